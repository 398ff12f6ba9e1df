//! A template of a request that is sent again and again with one value changed: encoded once, patched per
//! use.
//!
//! A benchmark client must not be the bottleneck. With a template it copies some hundred bytes per request
//! and patches two places.

use crate::{MsgFlags, OpMsgWriter, WireError};

/// Why a template cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// The placeholder does not stand exactly once in the body.
    #[error("the placeholder stands {count} times in the body, it must stand there once")]
    Placeholder {
        /// How often it stands there.
        count: usize,
    },
    /// The body is too large.
    #[error(transparent)]
    Wire(#[from] WireError),
}

/// An OP_MSG with a hole of `N` bytes in its body.
#[derive(Clone, Debug)]
pub struct RequestTemplate<const N: usize> {
    frame: Vec<u8>,
    hole: usize,
}

impl<const N: usize> RequestTemplate<N> {
    /// A template of a body (one document's bytes) in which `placeholder` marks the bytes to replace. An
    /// example is the eight bytes of an int64 with a value that occurs nowhere else.
    ///
    /// # Errors
    /// [`TemplateError`].
    pub fn new(body: &[u8], placeholder: &[u8; N]) -> Result<RequestTemplate<N>, TemplateError> {
        let mut frame = Vec::new();
        let writer = OpMsgWriter::begin(&mut frame, 0, 0, MsgFlags::NONE);
        writer.begin_body(&mut frame);
        let body_at = frame.len();
        frame.extend_from_slice(body);
        writer.finish(&mut frame)?;
        let mut places = (0..body.len()).filter(|at| body[*at..].starts_with(placeholder));
        match (places.next(), places.count()) {
            (Some(at), 0) => Ok(RequestTemplate { frame, hole: body_at + at }),
            (None, _) => Err(TemplateError::Placeholder { count: 0 }),
            (Some(_), more) => Err(TemplateError::Placeholder { count: more + 1 }),
        }
    }

    /// Appends the request with this id and these bytes in the hole.
    pub fn append(&self, out: &mut Vec<u8>, request_id: i32, value: &[u8; N]) {
        let start = out.len();
        out.extend_from_slice(&self.frame);
        out[start + 4..start + 8].copy_from_slice(&request_id.to_le_bytes());
        out[start + self.hole..start + self.hole + N].copy_from_slice(value);
    }

    /// The length of each request.
    pub fn request_bytes(&self) -> usize {
        self.frame.len()
    }
}
