//! What makes a figure doubtful. A run with misses or failures is not a measurement at all: it is *flagged*, and the tool
//! ends with 1.

use super::Figures;

/// Beyond this share of the CPU time, the client is a part of what is measured.
const CLIENT_SHARE_MAX: f64 = 0.25;
/// Beyond this, a thread of the client may be what limits the rate.
const THREAD_BUSY_MAX: f64 = 0.90;
/// Below this, the machine is what limits the rate, and client and server take from each other.
const MACHINE_IDLE_MIN: f64 = 0.05;
/// Beyond this share of the client's own ceiling, it is a part of what is measured.
const CEILING_SHARE_MAX: f64 = 0.5;

/// Whether the run is no measurement.
pub fn is_flagged(figures: &Figures) -> bool {
    figures.missed > 0 || figures.failed > 0 || figures.operations == 0
}

/// What to say beside the figures; `ceiling` is what the null server reached with as many clients.
pub fn warnings(figures: &Figures, ceiling: Option<f64>) -> Vec<String> {
    let mut warnings = Vec::new();
    if is_flagged(figures) {
        let (missed, failed) = (figures.missed, figures.failed);
        warnings.push(format!("FLAGGED: {missed} misses, {failed} failures: this is no measurement"));
        warnings.extend(figures.failures.iter().map(|failure| format!("failure: {failure}")));
    }
    if let Some(share) = figures.client_share().filter(|share| *share > CLIENT_SHARE_MAX) {
        warnings.push(format!(
            "the client took {:.0} % of the CPU time that it and the server used",
            share * 100.0
        ));
    }
    if let Some(busy) = figures.client_threads_busy.iter().copied().find(|busy| *busy > THREAD_BUSY_MAX) {
        warnings.push(format!("a client thread was {:.0} % busy: give it more by --threads", busy * 100.0));
    }
    if let Some(idle) = figures.machine_idle.filter(|idle| *idle < MACHINE_IDLE_MIN) {
        warnings.push(format!(
            "the machine was {:.1} % idle: client and server take CPU from each other",
            idle * 100.0
        ));
    }
    if let Some(ceiling) = ceiling.filter(|ceiling| figures.rate > CEILING_SHARE_MAX * ceiling) {
        let share = figures.rate / ceiling * 100.0;
        warnings.push(format!(
            "{share:.0} % of the tool's own ceiling of {ceiling:.0}/s: it limits what is seen"
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Tally, ThreadUsage, Verdict};
    use std::time::Duration;

    fn figures(change: impl FnOnce(&mut Tally)) -> Figures {
        let mut tally = Tally::new();
        tally.record(0, Duration::from_micros(1), Verdict::Done);
        change(&mut tally);
        let per_second = tally.per_second.clone();
        Figures::new(&tally, &per_second, 1.0, None)
    }

    #[test]
    fn a_clean_run_is_silent() {
        let clean = figures(|_| {});
        assert!(!is_flagged(&clean));
        assert_eq!(warnings(&clean, Some(100.0)), Vec::<String>::new());
    }

    #[test]
    fn one_miss_flags_a_run() {
        let missed = figures(|tally| tally.missed = 1);
        assert!(is_flagged(&missed));
        assert!(warnings(&missed, None)[0].starts_with("FLAGGED"));
        assert!(is_flagged(&Figures::new(&Tally::new(), &[], 1.0, None)), "nothing done is no measurement");
    }

    #[test]
    fn a_busy_thread_and_a_near_ceiling_are_told() {
        let busy = figures(|tally| tally.threads = vec![ThreadUsage { cpu_us: 950_000.0, switches: 0 }]);
        assert!(warnings(&busy, None)[0].contains("95 % busy"));
        assert!(warnings(&figures(|_| {}), Some(1.5))[0].contains("ceiling"));
    }
}
