//! Options that have no effect beside the others. Each gets a warning, since its administrator believes that
//! it protects or changes something.

use pando_commands::{AccessControl, ByteSize, Persona, PlainLogins};
use pando_tls::WithoutCertificate;

use crate::configuration::{Configuration, ProcessLogins, TlsMode, UnixSocket};

/// The name of a replica set that nobody has named.
const SET_NAME_DEFAULT: &str = "rs0";

/// A warning for each.
pub(super) fn warnings(configuration: &Configuration) -> Vec<String> {
    let transport = &configuration.transport;
    let has_tls = transport.tls_mode != TlsMode::Disabled;
    let has_login = configuration.access_control == AccessControl::On;
    let names_set = configuration.persona.set_name != SET_NAME_DEFAULT;
    let without_tls = |name: &str| {
        format!("{name} has no effect with --tls-mode disabled; choose allowTLS or requireTLS to offer TLS")
    };
    let mut warnings = Vec::new();
    if transport.tls.issuers.is_none() {
        let without_issuers = |name: &str| {
            format!("{name} has no effect without --tls-ca-file: no client is asked for a certificate")
        };
        if transport.tls.revoked.is_some() {
            warnings.push(without_issuers("--tls-crl-file"));
        }
        if transport.tls.without_certificate == WithoutCertificate::Allowed {
            warnings.push(without_issuers("--tls-allow-connections-without-certificates"));
        }
    }
    if transport.plain_logins == PlainLogins::Offered && !has_login {
        warnings.push("--auth-plain has no effect without --auth: no client has to log in".to_owned());
    } else if transport.plain_logins == PlainLogins::Offered && !has_tls {
        warnings.push(match configuration.unix_socket {
            UnixSocket::None => without_tls("--auth-plain"),
            _ => "--auth-plain is offered through the unix socket only: there is no TLS".to_owned(),
        });
    }
    if transport.process_logins == ProcessLogins::On && !has_login {
        warnings.push("--auth-unix-peer has no effect without --auth: no client has to log in".to_owned());
    }
    let audit = &transport.audit;
    let of_trail = [
        ("--audit-chain", audit.is_chained),
        ("--audit-path", audit.path.is_some()),
        ("--audit-filter", !matches!(audit.filter.as_str(), "" | "{}")),
    ];
    for (name, _) in of_trail.into_iter().filter(|(_, is_given)| *is_given && !audit.is_on) {
        warnings.push(format!("{name} has no effect without --audit-destination: there is no trail"));
    }
    if names_set && configuration.persona.persona != Persona::ReplicaSet {
        let persona = configuration.persona.persona.name();
        warnings.push(format!("--replica-set has no effect with --persona {persona}"));
    }
    warnings.extend(buffers_beyond_half(configuration));
    warnings
}

/// A warning for write buffers that would take more than half of the cache, which the engine allows at most.
fn buffers_beyond_half(configuration: &Configuration) -> Option<String> {
    let engine = configuration.engine.as_str();
    let last = |entries: &[(String, String)], wanted: &str| -> Option<ByteSize> {
        entries.iter().rfind(|(name, _)| name == wanted).and_then(|(_, size)| size.parse().ok())
    };
    let parameters = &configuration.monitoring.parameters;
    let budget = last(parameters, &format!("{engine}BufferBudget"))
        .or_else(|| last(&configuration.engine_options, "bufferBudget"))?;
    let cache = last(parameters, &format!("{engine}Cache")).unwrap_or(configuration.cache);
    let most = ByteSize::from_bytes(cache.bytes() / 2);
    (budget > most).then(|| {
        format!(
            "a bufferBudget of {budget} is more than half of the cache of {cache}: the write buffers take {most} at most; \
             choose more with --cache, or less for bufferBudget"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::Sources;

    fn warned(flags: &[(&'static str, &str)]) -> String {
        let flags = flags.iter().map(|(name, text)| (*name, (*text).to_owned())).collect();
        let configuration = Sources { flags, ..Sources::default() }.resolve(|_| None).unwrap();
        warnings(&configuration).join("\n")
    }

    #[test]
    fn an_option_without_effect_is_told() {
        assert_eq!(warned(&[]), "");
        assert!(
            warned(&[("tls-crl-file", "r.pem")])
                .contains("--tls-crl-file has no effect without --tls-ca-file")
        );
        let allowed = [("tls-allow-connections-without-certificates", "true")];
        assert!(warned(&allowed).contains("without --tls-ca-file"), "{}", warned(&allowed));
        assert!(warned(&[("auth-unix-peer", "true")]).contains("--auth-unix-peer"));
        assert!(warned(&[("audit-chain", "true")]).contains("--audit-chain"));
        assert!(warned(&[("audit-path", "x.json")]).contains("--audit-path"));
        assert!(warned(&[("audit-filter", "{\"atype\": \"x\"}")]).contains("--audit-filter"));
        assert!(warned(&[("auth-plain", "true")]).contains("without --auth"));
        let plain = [("auth-plain", "true"), ("auth", "true")];
        assert!(warned(&plain).contains("through the unix socket only"), "{}", warned(&plain));
        let set = [("replica-set", "shop"), ("persona", "standalone")];
        assert!(warned(&set).contains("--replica-set"), "{}", warned(&set));
        assert_eq!(warned(&set[..1]), "");
        let buffers = |budget: &str| warned(&[("engine-option", &format!("bufferBudget={budget}"))]);
        assert!(buffers("1TB").contains("take 128MB at most"), "{}", buffers("1TB"));
        assert_eq!((buffers("128MB"), buffers("auto")), (String::new(), String::new()));
        let parameters = [("set-parameter", "betreeBufferBudget=1GB,betreeCache=1GB")];
        assert!(warned(&parameters).contains("take 512MB at most"), "{}", warned(&parameters));
    }
}
