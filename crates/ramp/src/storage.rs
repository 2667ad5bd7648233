//! Files written whole or not at all, and arrays of numbers in them (safetensors: nothing that can execute on load).

use crate::{Error, Result};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::Path;

/// Writes a file under a temporary name beside it, makes sure it is on the disk, and renames it: a reader sees the old file
/// or the new one, whatever happens in between. Missing folders are made.
pub fn write_atomically(path: &Path, contents: &[u8]) -> Result<()> {
    let failed = |action: &'static str| {
        move |source: std::io::Error| Error::File {
            action,
            path: path.to_path_buf(),
            source,
        }
    };
    let folder = path
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|source| Error::File {
        action: "create",
        path: folder.to_path_buf(),
        source,
    })?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = folder.join(format!(".{name}.{}.tmp", std::process::id()));
    let written = File::create(&temporary)
        .and_then(|mut file| file.write_all(contents).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The write has failed already; a leftover that cannot be removed changes nothing about that.
        let _ = fs::remove_file(&temporary);
    }
    written.map_err(failed("write"))
}

/// Writes named arrays with a line of text beside them.
pub fn write_tensors(
    path: &Path,
    tensors: Vec<(String, Vec<usize>, &[f32])>,
    text: &str,
) -> Result<()> {
    let bytes: Vec<(String, Vec<usize>, Vec<u8>)> = tensors
        .into_iter()
        .map(|(name, shape, data)| {
            (
                name,
                shape,
                data.iter().flat_map(|x| x.to_le_bytes()).collect(),
            )
        })
        .collect();
    let views = bytes
        .iter()
        .map(|(name, shape, data)| {
            Ok((
                name.as_str(),
                TensorView::new(Dtype::F32, shape.clone(), data)?,
            ))
        })
        .collect::<Result<Vec<_>, safetensors::SafeTensorError>>()
        .map_err(|e| Error::Invalid(format!("arrays for `{}`: {e}", path.display())))?;
    let text = HashMap::from([("ramp".to_string(), text.to_string())]);
    let contents = safetensors::serialize(views, Some(text))
        .map_err(|e| Error::Invalid(format!("arrays for `{}`: {e}", path.display())))?;
    write_atomically(path, &contents)
}

/// Text and arrays by name.
pub type Stored = (String, HashMap<String, Vec<f32>>);

/// What [`write_tensors`] wrote: the text and the arrays by name; `None` where there is no such file.
pub fn read_tensors(path: &Path) -> Result<Option<Stored>> {
    let contents = match fs::read(path) {
        Ok(contents) => contents,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            return Err(Error::File {
                action: "read",
                path: path.to_path_buf(),
                source,
            });
        }
    };
    let damaged = |why: String| {
        Error::Invalid(format!(
            "`{}` is damaged or not a weights file: {why}",
            path.display()
        ))
    };
    let (_, header) = SafeTensors::read_metadata(&contents).map_err(|e| damaged(e.to_string()))?;
    let text = header
        .metadata()
        .as_ref()
        .and_then(|m| m.get("ramp"))
        .cloned()
        .unwrap_or_default();
    let tensors = SafeTensors::deserialize(&contents).map_err(|e| damaged(e.to_string()))?;
    let mut arrays = HashMap::new();
    for (name, view) in tensors.tensors() {
        if view.dtype() != Dtype::F32 {
            return Err(damaged(format!(
                "`{name}` is not an array of 32-bit numbers"
            )));
        }
        let numbers = view
            .data()
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        arrays.insert(name, numbers.collect());
    }
    Ok(Some((text, arrays)))
}
