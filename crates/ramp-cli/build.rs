//! With the feature `mpi`, compiles the few calls of MPI that ranks make, with the MPI's own compiler: its header is full of macros that only C can read.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "mpi")]
    mpi::build();
}

#[cfg(feature = "mpi")]
mod mpi {
    use std::process::Command;

    /// Asks for the words that link a program: OpenMPI, MPICH and Intel's each have their own way.
    const ASKS: [&str; 3] = ["--showme:link", "-link_info", "-show"];

    pub fn build() {
        println!("cargo::rerun-if-changed=src/ranks/mpi.c");
        println!("cargo::rerun-if-env-changed=MPICC");
        let compiler = std::env::var("MPICC").unwrap_or("mpicc".into());
        let words = ASKS.iter().find_map(|ask| {
            let said = Command::new(&compiler).arg(ask).output().ok()?;
            let text = String::from_utf8(said.stdout).ok()?;
            (said.status.success() && text.contains("-l")).then_some(text)
        });
        let Some(words) = words else {
            println!(
                "cargo::error=the feature mpi needs an MPI with its compiler: `{compiler}` does not say how to link; install one \
                 (Debian: libopenmpi-dev openmpi-bin) or name it with MPICC"
            );
            return;
        };
        let folder = std::env::var("OUT_DIR").expect("cargo names it");
        cc::Build::new()
            .compiler(&compiler)
            .file("src/ranks/mpi.c")
            .cargo_metadata(false)
            .compile("ramp_mpi");
        // The package has a library too, which links nothing of this.
        println!("cargo::rustc-link-arg-bins={folder}/libramp_mpi.a");
        let linked = |word: &&str| {
            ["-L", "-l", "-Wl,"]
                .iter()
                .any(|with| word.starts_with(with))
        };
        for word in words.split_whitespace().filter(linked) {
            println!("cargo::rustc-link-arg-bins={word}");
        }
    }
}
