//! Rows that a statement gave.

use std::sync::Arc;

use super::error::TxError;
use super::value::{FromSqlValue, SqlValue};

/// A row of an answer.
///
/// ```
/// use outlast_store::{Row, TxError};
///
/// let row = Row::new(["id", "note"].map(str::to_owned).into(), vec![7.into(), "paid".into()]);
/// assert_eq!(row.get::<i64>("id"), Ok(7));
/// assert_eq!(row.get::<String>(1), Ok("paid".to_owned()));
/// assert!(matches!(row.get::<i64>("note"), Err(TxError::Type { .. })));
/// assert!(matches!(row.get::<i64>("price"), Err(TxError::NoSuchColumn { .. })));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    columns: Arc<[String]>,
    values: Vec<SqlValue>,
}

impl Row {
    /// A row with these columns, which all rows of an answer share.
    pub fn new(columns: Arc<[String]>, values: Vec<SqlValue>) -> Self {
        Row { columns, values }
    }

    /// The value of a column, named by its place from 0 or by its name.
    ///
    /// # Errors
    ///
    /// If there is no such column, or its value has another type. `NULL` is a value only for an `Option`.
    pub fn get<T: FromSqlValue>(&self, column: impl Column) -> Result<T, TxError> {
        let found = column.place(&self.columns).and_then(|place| self.values.get(place));
        let Some(value) = found else {
            return Err(TxError::NoSuchColumn { column: column.shown(), there: self.columns.join(", ") });
        };
        T::from_value(value).ok_or_else(|| TxError::Type {
            column: column.shown(),
            wanted: T::WANTED,
            found: value.kind().to_owned(),
        })
    }

    /// The names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// All values, in the order of the columns.
    pub fn values(&self) -> &[SqlValue] {
        &self.values
    }
}

/// Names a column of a row: a place from 0, or a name.
pub trait Column {
    /// Where it is.
    fn place(&self, columns: &[String]) -> Option<usize>;
    /// How it is shown in messages.
    fn shown(&self) -> String;
}

impl Column for usize {
    fn place(&self, _columns: &[String]) -> Option<usize> {
        Some(*self)
    }

    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Column for &str {
    fn place(&self, columns: &[String]) -> Option<usize> {
        columns.iter().position(|column| column == self)
    }

    fn shown(&self) -> String {
        format!("{self:?}")
    }
}
