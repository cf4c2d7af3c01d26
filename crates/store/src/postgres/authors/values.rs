//! Values of statements and rows, in PostgreSQL's types.

use std::error::Error;
use std::pin::pin;
use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use futures_util::TryStreamExt;
use tokio_postgres::RowStream;
use tokio_postgres::types::{FromSql, IsNull, Kind, ToSql, Type, to_sql_checked};

use super::{Row, TxError};
use crate::transact::SqlValue;

type Wrong = Box<dyn Error + Sync + Send>;

/// A parameter whose type has been checked.
#[derive(Debug)]
pub(super) struct Param<'v>(&'v SqlValue);

/// The parameters of a statement, if they have the types it wants.
pub(super) fn params<'v>(values: &'v [SqlValue], wanted: &[Type]) -> Result<Vec<Param<'v>>, TxError> {
    if values.len() != wanted.len() {
        let message = format!("it has {} parameters, {} were given", wanted.len(), values.len());
        return Err(TxError::Refused { message, code: None });
    }
    for (at, (value, wanted)) in values.iter().zip(wanted).enumerate() {
        if !fits(value, base(wanted)) {
            return Err(TxError::Parameter {
                place: at + 1,
                found: value.kind(),
                wanted: wanted.to_string(),
                hint: format!("{}::{wanted}", sent_as(value)),
            });
        }
    }
    Ok(values.iter().map(Param).collect())
}

/// The type itself, or what a domain is made of.
fn base(wanted: &Type) -> &Type {
    match wanted.kind() {
        Kind::Domain(inner) => base(inner),
        _ => wanted,
    }
}

fn fits(value: &SqlValue, wanted: &Type) -> bool {
    match value {
        SqlValue::Null => true,
        SqlValue::Integer(value) => match *wanted {
            Type::INT8 | Type::FLOAT8 => true,
            Type::INT4 => i32::try_from(*value).is_ok(),
            Type::INT2 => i16::try_from(*value).is_ok(),
            _ => false,
        },
        SqlValue::Real(_) => matches!(*wanted, Type::FLOAT8 | Type::FLOAT4),
        SqlValue::Text(text) => {
            is_text(wanted) || *wanted == Type::JSONB || (*wanted == Type::UUID && uuid::Uuid::try_parse(text).is_ok())
        }
        SqlValue::Blob(_) => *wanted == Type::BYTEA,
        SqlValue::Boolean(_) => *wanted == Type::BOOL,
    }
}

/// Whether a text is sent and read as it is.
fn is_text(kind: &Type) -> bool {
    matches!(*kind, Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN | Type::JSON)
        || matches!(kind.kind(), Kind::Enum(_))
}

/// A type that takes the value as it is.
fn sent_as(value: &SqlValue) -> &'static str {
    match value {
        SqlValue::Null | SqlValue::Text(_) => "text",
        SqlValue::Integer(_) => "bigint",
        SqlValue::Real(_) => "float8",
        SqlValue::Blob(_) => "bytea",
        SqlValue::Boolean(_) => "boolean",
    }
}

impl ToSql for Param<'_> {
    fn to_sql(&self, wanted: &Type, out: &mut BytesMut) -> Result<IsNull, Wrong> {
        let wanted = base(wanted);
        match self.0 {
            SqlValue::Null => return Ok(IsNull::Yes),
            SqlValue::Integer(value) => match *wanted {
                Type::INT2 => out.put_i16(i16::try_from(*value)?),
                Type::INT4 => out.put_i32(i32::try_from(*value)?),
                #[expect(clippy::cast_precision_loss, reason = "what any database does with an integer there")]
                Type::FLOAT8 => out.put_f64(*value as f64),
                _ => out.put_i64(*value),
            },
            SqlValue::Real(value) => match *wanted {
                #[expect(clippy::cast_possible_truncation, reason = "the column asks for less precision")]
                Type::FLOAT4 => out.put_f32(*value as f32),
                _ => out.put_f64(*value),
            },
            SqlValue::Text(text) => match *wanted {
                Type::UUID => out.put_slice(uuid::Uuid::try_parse(text)?.as_bytes()),
                Type::JSONB => {
                    // The version of the encoding.
                    out.put_u8(1);
                    out.put_slice(text.as_bytes());
                }
                _ => out.put_slice(text.as_bytes()),
            },
            SqlValue::Blob(bytes) => out.put_slice(bytes),
            SqlValue::Boolean(value) => out.put_u8(u8::from(*value)),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

pub(super) async fn collect(rows: RowStream) -> Result<Vec<tokio_postgres::Row>, tokio_postgres::Error> {
    pin!(rows).try_collect().await
}

/// The rows as authors see them.
pub(super) fn rows(rows: Vec<tokio_postgres::Row>) -> Result<Vec<Row>, TxError> {
    let Some(first) = rows.first() else { return Ok(Vec::new()) };
    let columns: Arc<[String]> = first.columns().iter().map(|column| column.name().to_owned()).collect();
    let read = |row: &tokio_postgres::Row| {
        let values = (0..columns.len()).map(|at| value(row, at)).collect::<Result<_, _>>()?;
        Ok(Row::new(Arc::clone(&columns), values))
    };
    rows.iter().map(read).collect()
}

fn value(row: &tokio_postgres::Row, at: usize) -> Result<SqlValue, TxError> {
    row.try_get::<_, Cell>(at).map(|cell| cell.0).map_err(|_| TxError::Type {
        column: format!("{:?}", row.columns()[at].name()),
        wanted: "a type that is read here",
        found: row.columns()[at].type_().to_string(),
    })
}

/// A value of any type that is read here.
struct Cell(SqlValue);

impl<'a> FromSql<'a> for Cell {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Wrong> {
        let kind = base(kind);
        let value = match *kind {
            Type::BOOL => SqlValue::Boolean(bool::from_sql(kind, raw)?),
            Type::INT2 => SqlValue::Integer(i16::from_sql(kind, raw)?.into()),
            Type::INT4 => SqlValue::Integer(i32::from_sql(kind, raw)?.into()),
            Type::INT8 => SqlValue::Integer(i64::from_sql(kind, raw)?),
            Type::OID => SqlValue::Integer(u32::from_sql(kind, raw)?.into()),
            Type::FLOAT4 => SqlValue::Real(f32::from_sql(kind, raw)?.into()),
            Type::FLOAT8 => SqlValue::Real(f64::from_sql(kind, raw)?),
            Type::BYTEA => SqlValue::Blob(raw.to_vec()),
            Type::UUID => SqlValue::Text(uuid::Uuid::from_sql(kind, raw)?.to_string()),
            Type::JSONB => match raw.split_first() {
                Some((1, text)) => SqlValue::Text(std::str::from_utf8(text)?.to_owned()),
                _ => return Err("another version of the encoding".into()),
            },
            // What a function without a result gives.
            Type::VOID => SqlValue::Null,
            _ if is_text(kind) => SqlValue::Text(std::str::from_utf8(raw)?.to_owned()),
            _ => return Err("not read here".into()),
        };
        Ok(Cell(value))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Wrong> {
        Ok(Cell(SqlValue::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}
