//! Which bytes of a record batch belong to the columns that are asked for: the others are not read.

use arrow_ipc::RecordBatch;
use arrow_schema::{DataType, Schema, UnionMode};
use std::ops::Range;

/// Where the buffers of some columns lie in a batch's body; `None` where the batch does not have the buffers that its schema asks for, so that nothing
/// is known but the whole.
pub(super) fn needed(
    schema: &Schema,
    columns: &[usize],
    batch: &RecordBatch<'_>,
) -> Option<Vec<Range<u64>>> {
    let buffers = batch.buffers()?;
    let mut views = batch.variadicBufferCounts().into_iter().flatten();
    let (mut at, mut ranges) = (0_usize, vec![]);
    for (column, field) in schema.fields().iter().enumerate() {
        let count = buffers_of(field.data_type(), &mut || {
            usize::try_from(views.next()?).ok()
        })?;
        let own = at..at.checked_add(count).filter(|&end| end <= buffers.len())?;
        at = own.end;
        if columns.contains(&column) {
            for buffer in own.map(|b| buffers.get(b)) {
                let start = u64::try_from(buffer.offset()).ok()?;
                ranges.push(start..start.checked_add(u64::try_from(buffer.length()).ok()?)?);
            }
        }
    }
    (at == buffers.len()).then_some(ranges)
}

/// How many buffers a column of a type has (Arrow columnar format, "Buffer listing for each layout"); `views` counts those that the next column of views has
/// beyond its own.
fn buffers_of(kind: &DataType, views: &mut dyn FnMut() -> Option<usize>) -> Option<usize> {
    let with = |own: usize, child: &DataType, views: &mut dyn FnMut() -> Option<usize>| {
        Some(own + buffers_of(child, views)?)
    };
    match kind {
        DataType::Null => Some(0),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => Some(3),
        DataType::Utf8View | DataType::BinaryView => Some(2 + views()?),
        DataType::List(child) | DataType::LargeList(child) | DataType::Map(child, _) => {
            with(2, child.data_type(), views)
        }
        DataType::ListView(child) | DataType::LargeListView(child) => {
            with(3, child.data_type(), views)
        }
        DataType::FixedSizeList(child, _) => with(1, child.data_type(), views),
        DataType::Struct(fields) => {
            let mut all = 1;
            for field in fields {
                all += buffers_of(field.data_type(), views)?;
            }
            Some(all)
        }
        DataType::Union(fields, mode) => {
            let mut all = if *mode == UnionMode::Dense { 2 } else { 1 };
            for (_, field) in fields.iter() {
                all += buffers_of(field.data_type(), views)?;
            }
            Some(all)
        }
        DataType::RunEndEncoded(ends, values) => {
            let all = buffers_of(ends.data_type(), views)?;
            with(all, values.data_type(), views)
        }
        // Which are there and what they are; of a dictionary, its keys.
        _ => Some(2),
    }
}

#[cfg(test)]
mod tests {
    use super::super::IpcReader;
    use crate::table::TableReader;
    use arrow_array::builder::{ListBuilder, StringBuilder, StringDictionaryBuilder};
    use arrow_array::types::Int32Type;
    use arrow_array::{
        ArrayRef, BooleanArray, Int64Array, NullArray, RecordBatch, StringArray, StringViewArray,
        StructArray,
    };
    use std::sync::Arc;

    /// Every column by itself is what it is among all, whatever lies between them; and little is read for a small one.
    #[test]
    fn a_column_by_itself_is_what_it_is_among_all() {
        let n = 500;
        let texts: Vec<Option<String>> = (0..n)
            .map(|i| (i % 7 > 0).then(|| "long text ".repeat(i % 5) + &i.to_string()))
            .collect();
        let mut lists = ListBuilder::new(StringBuilder::new());
        let mut levels = StringDictionaryBuilder::<Int32Type>::new();
        for i in 0..n {
            lists.values().append_value(format!("entry {i}"));
            lists.append(i % 3 > 0);
            levels.append_value(["red", "green", "blue"][i % 3]);
        }
        let texts: ArrayRef = Arc::new(StringArray::from(texts));
        let views = texts.as_any().downcast_ref::<StringArray>().unwrap();
        let views: ArrayRef = Arc::new(views.iter().collect::<StringViewArray>());
        let numbers: ArrayRef = Arc::new(
            (0..n as i64)
                .map(|i| (i % 4 > 0).then_some(i))
                .collect::<Int64Array>(),
        );
        let flags: ArrayRef = Arc::new(
            (0..n)
                .map(|i| (i % 5 > 0).then_some(i % 2 == 0))
                .collect::<BooleanArray>(),
        );
        let field = |name: &str, of: &ArrayRef| {
            Arc::new(arrow_schema::Field::new(name, of.data_type().clone(), true))
        };
        let both = StructArray::from(vec![
            (field("a", &texts), texts.clone()),
            (field("b", &flags), flags.clone()),
        ]);
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("views", views.clone()),
            ("numbers", numbers.clone()),
            ("lists", Arc::new(lists.finish())),
            ("nothing", Arc::new(NullArray::new(n))),
            ("more views", views),
            ("both", Arc::new(both)),
            ("flags", flags),
            ("levels", Arc::new(levels.finish())),
            ("texts", texts),
            ("last", numbers),
        ];
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.iter().map(|(n, c)| (*n, c.clone(), true)),
        )
        .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("all.arrow");
        let mut writer = arrow_ipc::writer::FileWriter::try_new(
            std::fs::File::create(&path).unwrap(),
            &batch.schema(),
        )
        .unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        let whole = IpcReader::open(&path, None)
            .unwrap()
            .next(n)
            .unwrap()
            .unwrap();
        let size = std::fs::metadata(&path).unwrap().len();
        for (name, _) in columns {
            let reader = IpcReader::open(&path, Some(&[name.to_string()]));
            // What is nested has no reading, so it cannot be asked for.
            if let "lists" | "both" = name {
                assert!(reader.is_err(), "{name}");
                continue;
            }
            let mut reader = reader.unwrap();
            let alone = reader.next(n).unwrap().unwrap();
            assert_eq!(
                alone.column(0),
                whole.column_by_name(name).unwrap(),
                "{name}"
            );
            assert!(reader.messages.bytes_of_bodies < size / 2, "{name}");
        }
    }
}
