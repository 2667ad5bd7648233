//! Runs the Python tests on the module that cargo has just built: pytest, the examples of the documentation, the types.
//!
//! A virtual environment with pinned packages is made once in `target`. Where there is no Python, or no way to its packages, the
//! tests are skipped with a printed reason; under `CI=true` that is a failure.

use std::collections::hash_map::DefaultHasher;
use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, fs};

/// The oldest Python for which the pinned packages of the tests exist. The module itself runs on 3.10 and later.
const OLDEST: (u32, u32) = (3, 11);

/// Where tests run.
struct Place {
    python: PathBuf,
    /// The package with the module inside.
    stage: PathBuf,
    /// The command `ramp`, if it has been built.
    command: Option<PathBuf>,
}

fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder of the test program, where cargo puts the module too.
fn built() -> PathBuf {
    let program = env::current_exe().expect("this program");
    program.parent().expect("its folder").to_path_buf()
}

fn version(python: &Path) -> Option<(u32, u32)> {
    let asked = Command::new(python)
        .args(["-c", "import sys, venv; print(*sys.version_info[:2])"])
        .output()
        .ok()?;
    let text = String::from_utf8(asked.stdout).ok()?;
    let mut numbers = text.split_whitespace().map(|n| n.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

fn find_python() -> Result<(PathBuf, (u32, u32)), String> {
    let wished = env::var_os("RAMP_PYTHON").map(PathBuf::from);
    let usual = [
        "python3",
        "python",
        "python3.13",
        "python3.12",
        "python3.11",
    ]
    .map(PathBuf::from);
    let all = wished.into_iter().chain(usual);
    let mut found = all.filter_map(|python| version(&python).map(|v| (python, v)));
    found.find(|(_, version)| *version >= OLDEST).ok_or(format!(
        "there is no Python {}.{} or later",
        OLDEST.0, OLDEST.1
    ))
}

fn run(command: &mut Command) -> Result<(), String> {
    let done = command.output().map_err(|e| e.to_string())?;
    match done.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{}{}",
            String::from_utf8_lossy(&done.stdout),
            String::from_utf8_lossy(&done.stderr)
        )),
    }
}

/// A virtual environment with the pinned packages; the same one for the same pins.
fn environment(target: &Path) -> Result<PathBuf, String> {
    let (python, version) = find_python()?;
    let pins = crate_folder().join("requirements-test.txt");
    let text = fs::read_to_string(&pins).map_err(|e| e.to_string())?;
    let mut hasher = DefaultHasher::new();
    (text, version).hash(&mut hasher);
    let folder = target.join(format!(
        "python-{}.{}-{:016x}",
        version.0,
        version.1,
        hasher.finish()
    ));
    let inside = if cfg!(windows) {
        "Scripts/python.exe"
    } else {
        "bin/python"
    };
    let (own, ready) = (folder.join(inside), folder.join("ready"));
    if ready.exists() {
        return Ok(own);
    }
    run(Command::new(python)
        .args(["-m", "venv", "--clear"])
        .arg(&folder))?;
    run(Command::new(&own)
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "-r",
        ])
        .arg(&pins))
    .map_err(|said| format!("the packages of the tests cannot be installed: {said}"))?;
    fs::write(&ready, "").map_err(|e| e.to_string())?;
    Ok(own)
}

/// Puts the package together: its Python files and the module that was built.
fn stage(target: &Path) -> Result<PathBuf, String> {
    let stage = target.join("python-package");
    let package = stage.join("ramp_ml");
    let failed = |e: std::io::Error| e.to_string();
    let _ = fs::remove_dir_all(&stage);
    fs::create_dir_all(&package).map_err(failed)?;
    for file in fs::read_dir(crate_folder().join("python/ramp_ml")).map_err(failed)? {
        let file = file.map_err(failed)?;
        if file.path().is_file() {
            fs::copy(file.path(), package.join(file.file_name())).map_err(failed)?;
        }
    }
    let module = built().join(format!("{DLL_PREFIX}ramp_py{DLL_SUFFIX}"));
    let name = if cfg!(windows) {
        "_lib.pyd"
    } else {
        "_lib.abi3.so"
    };
    fs::copy(&module, package.join(name)).map_err(|e| format!("{}: {e}", module.display()))?;
    Ok(stage)
}

/// The place, made once; a reason where there is none.
fn place() -> Result<&'static Place, String> {
    static PLACE: OnceLock<Result<Place, String>> = OnceLock::new();
    let made = PLACE.get_or_init(|| {
        let profile = built().parent().map(Path::to_path_buf).unwrap_or_default();
        let target = profile.parent().map(Path::to_path_buf).unwrap_or_default();
        let python = environment(&target)?;
        // What was not built is no reason to skip.
        let stage = stage(&target).expect("the package");
        let command = profile.join(if cfg!(windows) { "ramp.exe" } else { "ramp" });
        Ok(Place {
            python,
            stage,
            command: command.exists().then_some(command),
        })
    });
    made.as_ref().map_err(String::clone)
}

/// Runs a module of Python's in the place, or says why not.
fn python(arguments: &[&str]) {
    let place = match place() {
        Ok(place) => place,
        Err(reason) if env::var("CI").is_ok_and(|ci| ci == "true") => {
            panic!("the Python tests cannot run: {reason}")
        }
        Err(reason) => {
            eprintln!("skipped: {reason}");
            return;
        }
    };
    let mut command = Command::new(&place.python);
    command
        .args(arguments)
        .current_dir(crate_folder())
        .env("PYTHONPATH", &place.stage)
        .env("RAMP_STAGE", &place.stage)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        // Nothing of the user's own configuration counts.
        .env_remove("PYTHONHOME")
        .env_remove("MPLBACKEND")
        .env_remove("MYPYPATH");
    if let Some(ramp) = &place.command {
        command.env("RAMP_COMMAND", ramp);
    }
    if let Err(said) = run(&mut command) {
        panic!("python {}\n{said}", arguments.join(" "));
    }
}

/// The package where it was put together.
fn package() -> String {
    let stage = place().map(|place| place.stage.join("ramp_ml"));
    stage.unwrap_or_default().display().to_string()
}

const PYTEST: [&str; 6] = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short"];

#[test]
fn pytest_passes() {
    python(&[&PYTEST[..], &["tests/py"]].concat());
}

#[test]
fn every_example_of_the_documentation_runs() {
    let package = package();
    python(&[&PYTEST[..], &["--doctest-modules", &package]].concat());
}

#[test]
fn types_are_strict() {
    let package = package();
    let config = crate_folder().join("../../pyproject.toml");
    let config = config.display().to_string();
    python(&[
        "-m",
        "mypy",
        "--strict",
        "--config-file",
        &config,
        "--cache-dir",
        "/dev/null",
        &package,
    ]);
}

#[test]
fn stubs_say_what_the_module_has() {
    let config = crate_folder().join("../../pyproject.toml");
    let config = config.display().to_string();
    python(&[
        "-m",
        "mypy.stubtest",
        "ramp_ml._lib",
        "--mypy-config-file",
        &config,
    ]);
}
