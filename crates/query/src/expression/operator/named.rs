//! Named arguments: `{$operator: {name: expression, …}}` as a list of arguments in a fixed order.

use pando_document::RawValue;

use super::{Call, Definition, ErrorCode, Expression, ParseScope, QueryError};

/// The named arguments of an operator.
pub(super) struct Names {
    /// With its `$`.
    pub(super) operator: &'static str,
    /// All names, in the order of the call's arguments.
    pub(super) names: &'static [&'static str],
    /// Which must be given, in the order in which they are missed, each with its error.
    pub(super) required: &'static [(&'static str, ErrorCode)],
    /// The argument is no object.
    pub(super) not_object: ErrorCode,
    /// A name that there is not.
    pub(super) unknown: ErrorCode,
}

impl Names {
    /// Parses every argument in the same scope.
    pub(super) fn parse(
        &self,
        argument: RawValue<'_>,
        scope: &ParseScope,
    ) -> Result<Vec<Option<Expression>>, QueryError> {
        let values = self.read(argument)?;
        let mut expressions = Vec::with_capacity(values.len());
        for value in values {
            expressions.push(value.map(|value| Expression::parse(value, scope)).transpose()?);
        }
        Ok(expressions)
    }

    /// Parses every argument in the same scope into a call of an operator.
    pub(super) fn call(
        &self,
        definition: &'static Definition,
        argument: RawValue<'_>,
        scope: &ParseScope,
    ) -> Result<Expression, QueryError> {
        Ok(Expression::from_call(Call::named(definition, self.parse(argument, scope)?)))
    }

    /// The arguments as they are written, for operators whose arguments have scopes of their own.
    pub(super) fn read<'v>(&self, argument: RawValue<'v>) -> Result<Vec<Option<RawValue<'v>>>, QueryError> {
        let operator = self.operator;
        let RawValue::Document(given) = argument else {
            return Err(QueryError::new(
                self.not_object,
                format!(
                    "{operator} only supports an object as its argument, found: {}",
                    argument.element_type().alias()
                ),
            ));
        };
        let mut values = vec![None; self.names.len()];
        for element in given.iter() {
            let (name, value) = element?;
            match self.names.iter().position(|known| *known == name) {
                Some(at) => values[at] = Some(value),
                None => {
                    return Err(QueryError::new(
                        self.unknown,
                        format!("{operator} found an unknown argument: {name}"),
                    ));
                }
            }
        }
        for (name, code) in self.required {
            let is_given =
                self.names.iter().zip(&values).any(|(known, value)| known == name && value.is_some());
            if !is_given {
                return Err(QueryError::new(*code, format!("{operator} requires '{name}' to be specified")));
            }
        }
        Ok(values)
    }
}
