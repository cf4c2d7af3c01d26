//! Turns the table of events into the enum, its kinds and its encoding, so that a field is described once.
//!
//! A field says where it is stored: `key` is the record's key column; `payload` is the author's bytes, bare; `meta` is
//! a member of the record's small JSON object, left out when it has its default; `failure` is an error, whose data is
//! the payload and whose rest is the member `error`.

macro_rules! events {
    ($(
        $(#[$doc:meta])*
        $name:ident = $code:literal, $text:literal, $class:ident {
            $($(#[$field_doc:meta])* $column:ident $field:ident: $type:ty $(= $default:expr)?,)*
        }
    )+) => {
        /// A stored fact about a run.
        ///
        /// ```
        /// use outlast_core::Bytes;
        /// use outlast_core::event::{Event, Kind};
        /// use outlast_core::id::Key;
        /// use outlast_core::time::Timestamp;
        ///
        /// let event = Event::StepFinished { key: Key::new("charge")?, result: Bytes::from("42"), attempts: 1 };
        /// let record = event.encode(Timestamp::from_millis(1_000));
        /// assert_eq!(record.kind, Kind::StepFinished.code());
        /// assert_eq!(record.meta, None); // the common case has no envelope
        /// assert_eq!(Event::decode(&record)?, event);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Event {
            $($(#[$doc])* $name { $($(#[$field_doc])* $field: $type,)* },)+
        }

        /// Which kind of event. Codes and names are stored: they never change, and a retired one is never used again.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub enum Kind {
            $($(#[$doc])* $name = $code,)+
        }

        impl Kind {
            /// All kinds, in the order of the table.
            pub const ALL: &'static [Kind] = &[$(Kind::$name),+];

            /// The number in the record's kind column.
            pub const fn code(self) -> u16 {
                self as u16
            }

            /// The name people and tools see, such as `STEP_FINISHED`.
            pub const fn name(self) -> &'static str {
                match self { $(Kind::$name => $text,)+ }
            }

            /// What the journal does with it. A [`Kind::StepStarted`] is kept for at-most-once steps only, so ask
            /// [`Event::class`] where an event is at hand.
            pub const fn class(self) -> Class {
                match self { $(Kind::$name => Class::$class,)+ }
            }

            /// The kind with this code.
            pub const fn from_code(code: u16) -> Option<Kind> {
                match code { $($code => Some(Kind::$name),)+ _ => None }
            }

            /// The kind with this name.
            pub fn from_name(name: &str) -> Option<Kind> {
                match name { $($text => Some(Kind::$name),)+ _ => None }
            }
        }

        impl Event {
            /// Which kind of event it is.
            pub const fn kind(&self) -> Kind {
                match self { $(Event::$name { .. } => Kind::$name,)+ }
            }

            fn put(&self, fields: &mut Draft) {
                match self { $(Event::$name { $($field),* } => {
                    $(column!(put fields, $column $field $(= $default)?);)*
                })+ }
            }

            fn take(kind: Kind, fields: &mut Fields) -> Result<Event, DecodeError> {
                Ok(match kind { $(Kind::$name => Event::$name {
                    $($field: column!(take fields, $column $field: $type $(= $default)?),)*
                },)+ })
            }
        }
    };
}

macro_rules! column {
    (put $to:ident, key $field:ident) => {
        $to.key($field)
    };
    (put $to:ident, payload $field:ident) => {
        $to.payload($field)
    };
    (put $to:ident, failure $field:ident) => {
        $to.failure($field)
    };
    (put $to:ident, meta $field:ident) => {
        $to.meta(stringify!($field), $field)
    };
    (put $to:ident, meta $field:ident = $default:expr) => {
        if *$field != $default {
            $to.meta(stringify!($field), $field)
        }
    };
    (take $from:ident, key $field:ident: $type:ty) => {
        $from.key()?
    };
    (take $from:ident, payload $field:ident: $type:ty) => {
        <$type as Payload>::from_column($from)?
    };
    (take $from:ident, failure $field:ident: $type:ty) => {
        $from.failure()?
    };
    (take $from:ident, meta $field:ident: $type:ty) => {
        $from.meta::<$type>(stringify!($field))?
    };
    (take $from:ident, meta $field:ident: $type:ty = $default:expr) => {
        $from.meta_or::<$type>(stringify!($field), $default)?
    };
}
