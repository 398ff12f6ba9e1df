//! `getDiagnosticData`: the newest sample of all figures, as monitoring programs ask for it. The sample is
//! taken for the request: none is kept.

use pando_document::{DocumentWriter, RawDocument};

use super::server_status;
use crate::context::Context;
use crate::{CommandError, Request};

/// Answers the sample.
pub(crate) fn run(
    context: &mut Context<'_>,
    _request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let mut data = reply.document("data");
    data.append_date_time("start", context.shared.now_ms());
    let mut status = data.document("serverStatus");
    status.append_date_time("start", context.shared.now_ms());
    server_status::write(context, RawDocument::empty(), &mut status);
    status.append_f64("ok", 1.0);
    status.append_date_time("end", context.shared.now_ms());
    status.finish();
    data.append_date_time("end", context.shared.now_ms());
    data.finish();
    Ok(())
}
