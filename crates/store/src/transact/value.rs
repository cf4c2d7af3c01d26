//! Values that go into statements and come out of rows.

/// A value of a statement's parameter or of a row's column.
#[derive(Clone, Debug, PartialEq)]
pub enum SqlValue {
    /// No value.
    Null,
    /// An integer.
    Integer(i64),
    /// A floating point number.
    Real(f64),
    /// A text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
    /// True or false. SQLite keeps it as 1 or 0.
    Boolean(bool),
}

impl SqlValue {
    /// What kind of value it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            SqlValue::Null => "null",
            SqlValue::Integer(_) => "an integer",
            SqlValue::Real(_) => "a real",
            SqlValue::Text(_) => "a text",
            SqlValue::Blob(_) => "a blob",
            SqlValue::Boolean(_) => "a boolean",
        }
    }
}

/// The parameters of a statement: `params![id, amount, "paid"]`.
#[macro_export]
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        ::std::vec::Vec::<$crate::SqlValue>::from([$($crate::SqlValue::from($value)),*])
    };
}

macro_rules! value_from {
    ($($type:ty => $make:expr;)*) => {
        $(impl From<$type> for SqlValue {
            fn from(value: $type) -> Self {
                $make(value)
            }
        })*
    };
}

value_from! {
    bool => SqlValue::Boolean;
    i64 => SqlValue::Integer;
    i32 => |value| SqlValue::Integer(i64::from(value));
    i16 => |value| SqlValue::Integer(i64::from(value));
    u32 => |value| SqlValue::Integer(i64::from(value));
    u16 => |value| SqlValue::Integer(i64::from(value));
    u8 => |value| SqlValue::Integer(i64::from(value));
    f64 => SqlValue::Real;
    f32 => |value| SqlValue::Real(f64::from(value));
    String => SqlValue::Text;
    &String => |value: &String| SqlValue::Text(value.clone());
    &str => |value: &str| SqlValue::Text(value.to_owned());
    Vec<u8> => SqlValue::Blob;
    &[u8] => |value: &[u8]| SqlValue::Blob(value.to_vec());
}

impl<T: Into<SqlValue>> From<Option<T>> for SqlValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(SqlValue::Null, Into::into)
    }
}

/// What [`crate::Row::get`] can give.
pub trait FromSqlValue: Sized {
    /// What it is called in messages.
    const WANTED: &'static str;

    /// The value, or none if it has another type.
    fn from_value(value: &SqlValue) -> Option<Self>;
}

impl FromSqlValue for SqlValue {
    const WANTED: &'static str = "a value";

    fn from_value(value: &SqlValue) -> Option<Self> {
        Some(value.clone())
    }
}

impl<T: FromSqlValue> FromSqlValue for Option<T> {
    const WANTED: &'static str = T::WANTED;

    fn from_value(value: &SqlValue) -> Option<Self> {
        if *value == SqlValue::Null { Some(None) } else { T::from_value(value).map(Some) }
    }
}

impl FromSqlValue for bool {
    const WANTED: &'static str = "a boolean";

    fn from_value(value: &SqlValue) -> Option<Self> {
        match value {
            SqlValue::Boolean(value) => Some(*value),
            // SQLite has no booleans of its own.
            SqlValue::Integer(0) => Some(false),
            SqlValue::Integer(1) => Some(true),
            _ => None,
        }
    }
}

macro_rules! integers {
    ($($type:ty),*) => {
        $(impl FromSqlValue for $type {
            const WANTED: &'static str = concat!("an integer (", stringify!($type), ")");

            fn from_value(value: &SqlValue) -> Option<Self> {
                if let SqlValue::Integer(value) = value { (*value).try_into().ok() } else { None }
            }
        })*
    };
}

integers!(i64, i32, i16, u64, u32, u16, u8, usize);

impl FromSqlValue for f64 {
    const WANTED: &'static str = "a real";

    fn from_value(value: &SqlValue) -> Option<Self> {
        if let SqlValue::Real(value) = value { Some(*value) } else { None }
    }
}

impl FromSqlValue for String {
    const WANTED: &'static str = "a text";

    fn from_value(value: &SqlValue) -> Option<Self> {
        if let SqlValue::Text(value) = value { Some(value.clone()) } else { None }
    }
}

impl FromSqlValue for Vec<u8> {
    const WANTED: &'static str = "a blob";

    fn from_value(value: &SqlValue) -> Option<Self> {
        if let SqlValue::Blob(value) = value { Some(value.clone()) } else { None }
    }
}
