//! The rewriting of an encrypted store under a new data key, as `serverStatus` and `currentOp` show it.

use pando_catalog::Catalog;
use pando_document::{DocumentWriter, RawDocumentBuf};

use crate::diagnostic::statistics_document::whole_number;

/// The phases by their numbers in the engine's statistics.
const PHASES: [&str; 4] = ["none", "rewriting", "settling", "held by damaged blocks"];

/// The figures of an encrypted store.
pub(super) struct KeyRewriting {
    data_keys: u64,
    phase: u64,
    figures: [(&'static str, u64); 6],
}

impl KeyRewriting {
    /// The figures; `None` for a store that is not encrypted.
    pub(super) fn of(catalog: &Catalog) -> Option<KeyRewriting> {
        let statistics = catalog.engine().statistics();
        let figure = |name| statistics.get(name).unwrap_or(0);
        Some(KeyRewriting {
            data_keys: statistics.get("encryption.data_keys")?,
            phase: figure("encryption.rewrite_phase"),
            figures: [
                ("passes", figure("encryption.rewrite_passes")),
                ("doneBytes", figure("encryption.rewrite_done_bytes")),
                ("totalBytes", figure("encryption.rewrite_total_bytes")),
                ("rewrittenBytes", figure("encryption.rewritten_bytes")),
                ("damaged", figure("encryption.rewrite_damaged")),
                ("failures", figure("encryption.failed_rewrites")),
            ],
        })
    }

    fn phase_name(&self) -> &'static str {
        usize::try_from(self.phase).ok().and_then(|at| PHASES.get(at)).copied().unwrap_or("unknown")
    }

    /// Writes the section of `serverStatus`.
    pub(super) fn write(&self, security: &mut DocumentWriter<'_>) {
        let mut section = security.document("encryptionAtRest");
        section.append_i64("dataKeys", whole_number(self.data_keys));
        let mut rewriting = section.document("rewriting");
        rewriting.append_str("phase", self.phase_name());
        for (name, figure) in self.figures {
            rewriting.append_i64(name, whole_number(figure));
        }
        rewriting.finish();
        section.finish();
    }

    /// The document of `currentOp`, while there is work.
    pub(super) fn operation(&self, host: &str) -> Option<RawDocumentBuf> {
        if self.phase == 0 {
            return None;
        }
        let mut bytes = Vec::with_capacity(256);
        let mut out = DocumentWriter::begin(&mut bytes);
        out.append_str("type", "op");
        out.append_str("host", host);
        out.append_str("desc", "KeyRewriting");
        out.append_bool("active", true);
        out.append_str("op", "none");
        out.append_str("ns", "");
        out.document("command").finish();
        out.append_str("msg", &format!("Key rewriting: {}", self.phase_name()));
        let [_, (_, done), (_, total), ..] = self.figures;
        let mut progress = out.document("progress");
        progress.append_i64("done", whole_number(done.min(total)));
        progress.append_i64("total", whole_number(total));
        progress.finish();
        out.append_bool("waitingForLock", false);
        out.finish();
        RawDocumentBuf::from_vec(bytes).ok()
    }
}
