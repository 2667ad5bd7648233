//! Keys of model files that have another name now: who writes an old one is told the new one.

use super::ModelFileError;
use toml::{Table, Value};

/// Section, key until now, key from now on.
pub(super) const RETIRED: [(&str, &str, &str); 5] = [
    ("networks", "view", "inputs"),
    ("train", "hide", "mask"),
    ("train", "hide_run", "mask_span"),
    ("train", "hide_warmup", "mask_warmup"),
    ("train.optimizer", "fading", "scheduled_decay"),
];

/// Looks for keys that have another name now.
pub(super) fn check(file: &Table) -> Result<(), ModelFileError> {
    for (section, key, now) in RETIRED {
        let mut table = Some(file);
        for name in section.split('.') {
            table = table.and_then(|t| t.get(name)).and_then(Value::as_table);
        }
        if table.is_some_and(|t| t.contains_key(key)) {
            return Err(ModelFileError::RetiredSetting {
                section: section.into(),
                key: key.into(),
                now,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::RETIRED;
    use crate::{Error, ModelFile, model_file::ModelFileError};

    #[test]
    fn every_retired_key_is_refused_with_its_new_name_and_the_new_name_is_read() {
        let file = |section: &str, key: &str| {
            let value = match key {
                "view" | "inputs" => "\"natural\"",
                "fading" | "scheduled_decay" => "true",
                "hide" | "mask" => "0.25",
                _ => "4",
            };
            let kind = match section {
                "train.optimizer" => "kind = \"adam\"\n",
                _ => "",
            };
            format!("[tree]\nnewick = \"(a,b,c)z;\"\n[{section}]\n{kind}{key} = {value}\n")
        };
        for (section, key, now) in RETIRED {
            let error = ModelFile::parse(&file(section, key)).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("[{section}] has no setting `{key}` any more: it is called `{now}`")
            );
            assert!(matches!(
                error,
                Error::ModelFile(ModelFileError::RetiredSetting { .. })
            ));
            ModelFile::parse(&file(section, now)).unwrap();
        }
    }
}
