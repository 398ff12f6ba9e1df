//! Names of certificates, by which their owners log in: the text of a name has no characters that a list or a
//! log would act on, and no value of a name can look like a further part.

use pando_tls::name_of_der;

/// Inputs that are sound: names of one part, of two, and with characters that separate parts.
pub fn examples() -> Vec<Vec<u8>> {
    let part = |kind: u8, tag: u8, value: &[u8]| {
        let mut attribute = vec![6, 3, 0x55, 4, kind, tag, u8::try_from(value.len()).unwrap_or(0)];
        attribute.extend(value);
        let mut set = vec![0x31, u8::try_from(attribute.len() + 2).unwrap_or(0), 0x30];
        set.push(u8::try_from(attribute.len()).unwrap_or(0));
        set.extend(attribute);
        set
    };
    let name = |parts: &[Vec<u8>]| {
        let content = parts.concat();
        let mut name = vec![0x30, u8::try_from(content.len()).unwrap_or(0)];
        name.extend(content);
        name
    };
    vec![
        name(&[part(3, 12, b"app")]),
        name(&[part(10, 19, b"org"), part(3, 12, "\u{fc}\0,O=other+CN=root".as_bytes())]),
        name(&[part(3, 20, b" #\xff "), part(3, 30, b"\0a\0b")]),
        name(&[part(99, 2, b"\x01")]),
    ]
}

/// See the module.
pub fn run(bytes: &[u8]) {
    let Some(name) = name_of_der(bytes) else { return };
    assert!(name.text.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{:?}", name.text);
    let (mut separators, mut is_escaped) = (0, false);
    for byte in name.text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b',' | b'+' => separators += 1,
            _ => {}
        }
    }
    assert!(!is_escaped, "{:?}", name.text);
    assert_eq!(separators + 1, name.attributes.max(1), "{:?}", name.text);
}
