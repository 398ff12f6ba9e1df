//! `$sampleRate`: each document is drawn with this probability, independently of the others. The test is the
//! expression `{$lt: [{$rand: {}}, rate]}`.

use pando_document::{Number, RawValue, doc};

use super::{ExpressionTest, Node};
use crate::error::QueryError;
use crate::expression::{Expression, ParseScope};

/// The test of each document, or none where the rate is 1.
pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Option<Node>, QueryError> {
    let Some(rate) = Number::from_value(argument).map(Number::to_f64) else {
        return Err(QueryError::bad_value("argument to $sampleRate must be a numeric type"));
    };
    if !(0.0..=1.0).contains(&rate) {
        return Err(QueryError::bad_value("numeric argument to $sampleRate must be in [0, 1]"));
    }
    if rate == 0.0 {
        return Ok(Some(Node::Never));
    }
    if rate == 1.0 {
        return Ok(None);
    }
    let drawn = doc! { "$lt": [{ "$rand": {} }, rate] }.to_raw();
    let drawn = RawValue::Document(&drawn);
    ExpressionTest::node(drawn, Expression::parse(drawn, scope)?).map(Some)
}
