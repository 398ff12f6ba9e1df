//! The text of a master key, and the file with the data keys of a store. No input is taken for keys that it
//! does not have.

/// Inputs that are sound but for their tags.
pub fn examples() -> Vec<Vec<u8>> {
    let mut table = vec![1, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 52, 0, 0, 0];
    table.extend_from_slice(&[9; 12]);
    table.extend_from_slice(b"store/1");
    table.extend_from_slice(&[5; 52 + 16]);
    let mut key = vec![1, 0, 0, 0];
    key.extend_from_slice(&[0; 48]);
    vec![
        table,
        key,
        b"5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a\n".to_vec(),
        b"WlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlo=".to_vec(),
    ]
}

/// See the module.
pub fn run(bytes: &[u8]) {
    let _key = pando_encryption::parse_key_text(bytes);
    pando_encryption::decode_key_table(bytes);
}
