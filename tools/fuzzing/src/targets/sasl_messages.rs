//! The messages of a client that logs in: the first line is its first message, all that follows its last one.
//! A name that is read can be written so that it reads the same.

use pando_access::scram::{ClientFirst, Credential, Exchange, Mechanism};

/// Inputs that are sound but for their proofs.
pub fn examples() -> Vec<Vec<u8>> {
    const TEXTS: [&str; 4] = [
        "n,,n=ada,r=abcdefgh\nc=biws,r=abcdefghserver,p=PROOF",
        "n,,n=a=2Cb=3Dc,r=abcdefgh\nc=biws,r=abcdefghserver,p=AAAA",
        "n,,n=ada,r=!$%&'()*+-./:;<>?@\n",
        "y,,n=ada,r=abcdefgh\nc=eSws,r=abcdefghserver,p=AAAA",
    ];
    TEXTS.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// See the module.
pub fn run(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (first, last) = (&bytes[..end], bytes.get(end + 1..).unwrap_or_default());
    let Ok(first) = ClientFirst::read(first) else { return };
    let escaped = first.user.replace('=', "=3D").replace(',', "=2C");
    let again = ClientFirst::read(format!("n,,n={escaped},r=abcdefgh").as_bytes());
    assert_eq!(again.expect("what was read can be written").user, first.user);
    for mechanism in [Mechanism::ScramSha1, Mechanism::ScramSha256] {
        let credential = Credential::derive(mechanism, "pencil", b"salt", 1);
        let (exchange, reply) = Exchange::begin(&first, credential, "server");
        assert!(reply.starts_with("r=") && reply.ends_with(",i=1"));
        if let Ok(answer) = exchange.finish(last) {
            assert!(answer.starts_with("v="));
        }
    }
}
