//! Edits of something that is right: a fuzzer finds more behind a door that opens.

/// Applies edits of four bytes each: what, where (two bytes), and with which byte.
pub fn apply(right: &[u8], edits: &[u8]) -> Vec<u8> {
    let mut bytes = right.to_vec();
    for edit in edits.chunks_exact(4).take(32) {
        let at = usize::from(u16::from_le_bytes([edit[1], edit[2]])) % bytes.len().max(1);
        match edit[0] % 6 {
            0 if !bytes.is_empty() => bytes[at] = edit[3],
            1 => bytes.insert(at.min(bytes.len()), edit[3]),
            2 if !bytes.is_empty() => drop(bytes.remove(at)),
            3 => bytes.truncate(at),
            4 if !bytes.is_empty() => bytes[at] ^= 1 << (edit[3] % 8),
            _ => {
                // Digits grow into absurd numbers.
                let more = vec![b'9'; usize::from(edit[3] % 24)];
                bytes.splice(at..at, more);
            }
        }
    }
    bytes
}
