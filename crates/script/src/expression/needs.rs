//! What an expression can see of the values it names. Only that is given to the machine: a condition that looks at one field must
//! not cost as much as everything that lies beside it, once for every item of a list.

use std::sync::Arc;

use serde_json::Value as Json;

use super::Reference;
use crate::heap::Object;
use crate::machine::Machine;
use crate::value::Value;

/// Fields further in than this are given with all that is around them.
const FIELDS_MAX: usize = 16;

/// What is looked at of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    All,
    /// These fields, and nothing else.
    Fields(Vec<(Arc<str>, Needs)>),
}

impl Needs {
    /// What all references to a name look at together.
    pub(super) fn of(name: &str, references: &[Reference]) -> Needs {
        let mut needs = Needs::Fields(Vec::new());
        let mut is_known = false;
        for reference in references.iter().filter(|reference| &*reference.name == name) {
            is_known = true;
            needs.add(&mut reference.fields.iter().take(FIELDS_MAX).map(|(field, _)| field));
        }
        if is_known { needs } else { Needs::All }
    }

    fn add(&mut self, path: &mut dyn Iterator<Item = &Arc<str>>) {
        let Needs::Fields(fields) = self else { return };
        let Some(field) = path.next() else {
            *self = Needs::All;
            return;
        };
        let place = fields.iter().position(|(known, _)| known == field).unwrap_or_else(|| {
            fields.push((Arc::clone(field), Needs::Fields(Vec::new())));
            fields.len() - 1
        });
        fields[place].1.add(path);
    }

    /// The value, without what nobody looks at.
    pub(super) fn value(&self, json: &Json, machine: &mut Machine) -> Value {
        match (self, json) {
            (Needs::Fields(fields), Json::Object(values)) => {
                let mut object = Object::default();
                for (field, needs) in fields {
                    if let Some(value) = values.get(&**field) {
                        object.set(field, needs.value(value, machine));
                    }
                }
                machine.heap.object(object)
            }
            // How long it is: whatever is in it.
            (Needs::Fields(fields), Json::Array(items)) if fields.iter().all(|(field, _)| &**field == "length") => {
                machine.heap.list(vec![Value::Null; items.len()])
            }
            (Needs::All | Needs::Fields(_), _) => machine.value_of_json(json),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::Expression;

    fn needs(text: &str) -> Needs {
        let expression = Expression::compile(text, &["input", "other"]).unwrap();
        Needs::of("input", expression.references())
    }

    fn fields(fields: &[(&str, Needs)]) -> Needs {
        Needs::Fields(fields.iter().map(|(name, needs)| (Arc::from(*name), needs.clone())).collect())
    }

    #[test]
    fn what_is_read_of_a_name_is_all_that_is_needed_of_it() {
        assert_eq!(needs("other.x == input.stop"), fields(&[("stop", Needs::All)]));
        let deep = fields(&[("a", fields(&[("b", Needs::All), ("c", Needs::All)]))]);
        assert_eq!(needs("input.a.b + input.a.c + input.a.b"), deep);
        assert_eq!(needs("input.a.b + input.a"), fields(&[("a", Needs::All)]));
        assert_eq!(needs("input.a + input.a.b"), fields(&[("a", Needs::All)]));
        assert_eq!(needs("input.a?.b"), fields(&[("a", Needs::All)]));
        assert_eq!(needs("input.a.map(x => x.b)"), fields(&[("a", Needs::All)]));
        assert_eq!(needs("input.a[0].b"), fields(&[("a", Needs::All)]));
        for whole in
            ["input", "input?.a", "{ input }.input.a", "{ ...input }.a", "input['a']", "input.keys() + input.a"]
        {
            assert_eq!(needs(whole), Needs::All, "{whole}");
        }
        assert_eq!(needs("other.x == 1"), Needs::All, "what is not known is given as it is");
        let far = format!("input{}", ".a".repeat(100));
        assert!(format!("{:?}", needs(&far)).matches("Fields").count() <= FIELDS_MAX);
    }
}
