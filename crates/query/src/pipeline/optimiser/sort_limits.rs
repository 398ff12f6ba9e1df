//! A `$sort` with a `$limit` behind it, perhaps after a `$skip`, holds only so many documents.

use std::sync::Arc;

use super::ParsedStage;

/// Tells each `$sort` how many of its documents are drawn.
pub(super) fn limit(stages: &mut [ParsedStage]) {
    for at in 0..stages.len() {
        let (mut skipped, mut wanted) = (0_u64, None);
        for behind in &stages[at + 1..] {
            match (behind.name(), behind.argument_count()) {
                ("$skip", Some(count)) => skipped = skipped.saturating_add(count),
                ("$limit", Some(count)) => wanted = Some(skipped.saturating_add(count)),
                _ => {}
            }
            if behind.name() != "$skip" {
                break;
            }
        }
        if let Some(limited) = wanted.and_then(|wanted| stages[at].definition.limited(wanted)) {
            stages[at].definition = Arc::from(limited);
        }
    }
}
