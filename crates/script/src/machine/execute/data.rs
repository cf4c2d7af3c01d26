//! Instructions about objects and lists.

use super::Flow;
use crate::code::Op;
use crate::heap::Object;
use crate::machine::{Done, Machine, Stop};
use crate::value::{Id, Value};

impl Machine {
    /// Instructions about objects and lists.
    pub(super) fn data(&mut self, op: Op) -> Done<Flow> {
        match op {
            Op::Member(name) => {
                let object = self.pop();
                let value = self.member(object, name)?;
                self.push(value)
            }
            Op::FindMethod(name) => {
                self.find_method(name)?;
                Ok(Flow::Next)
            }
            Op::SetMember(name) => {
                let (object, value) = self.pop_two();
                self.set_member(object, name, value)?;
                self.push(value)
            }
            Op::DeleteMember(name) => {
                let object = self.pop();
                let key = Value::Text(Id(name));
                let removed = self.delete(object, key)?;
                self.push(removed)
            }
            Op::Index => {
                let (object, index) = self.pop_two();
                let value = self.index(object, index)?;
                self.push_new(value)
            }
            Op::SetIndex => {
                let value = self.pop();
                let (object, index) = self.pop_two();
                self.set_index(object, index, value)?;
                self.push(value)
            }
            Op::DeleteIndex => {
                let (object, index) = self.pop_two();
                let removed = self.delete(object, index)?;
                self.push(removed)
            }
            Op::NewList(count) => {
                let items = self.stack.split_off(self.stack.len() - count as usize);
                let list = self.heap.list(items);
                self.push_new(list)
            }
            Op::Append => {
                let value = self.pop();
                self.append(self.top(), value)?;
                Ok(Flow::Next)
            }
            Op::Extend => {
                let value = self.pop();
                let items = self.elements(value, "...")?;
                for item in items {
                    self.append(self.top(), item)?;
                }
                Ok(Flow::Next)
            }
            Op::NewObject => {
                let object = self.heap.object(Object::default());
                self.push_new(object)
            }
            Op::Property(name) => {
                let value = self.pop();
                if let Value::Object(id) = self.top() {
                    let key = self.heap.text_of(Id(name)).text.clone();
                    self.heap.set_property(id, &key, value);
                }
                Ok(Flow::Next)
            }
            Op::ComputedProperty => {
                let (key, value) = self.pop_two();
                let key = self.key_of(key)?;
                if let Value::Object(id) = self.top() {
                    self.heap.set_property(id, &key, value);
                }
                Ok(Flow::Next)
            }
            Op::SpreadObject => {
                let value = self.pop();
                self.spread_object(value)?;
                Ok(Flow::Next)
            }
            other => self.taking_apart(other),
        }
    }

    fn taking_apart(&mut self, op: Op) -> Done<Flow> {
        match op {
            Op::CheckList => {
                let value = self.pop();
                let list = self.iterable(value, "a list pattern")?;
                self.push(list)
            }
            Op::CheckObject => self.check_object().map(|()| Flow::Next),
            Op::Element(place) => {
                let list = self.pop();
                let value = match list {
                    Value::List(id) => self.heap.list_of(id).get(place as usize).copied().unwrap_or(Value::Null),
                    _ => Value::Null,
                };
                self.push(value)
            }
            Op::RestOfList(from) => {
                let list = self.pop();
                let rest = match list {
                    Value::List(id) => self.heap.list_of(id).get(from as usize..).unwrap_or_default().to_vec(),
                    _ => Vec::new(),
                };
                let rest = self.heap.list(rest);
                self.push_new(rest)
            }
            Op::RestOfObject(keys) => {
                let rest = self.rest_of_object(keys as usize);
                self.push_new(rest)
            }
            Op::Iterate => {
                let value = self.pop();
                let list = self.iterable(value, "for … of")?;
                self.push_new(list)
            }
            Op::Keys => {
                let value = self.pop();
                let keys = self.keys_of(value)?;
                self.push_new(keys)
            }
            // Everything else is dealt with before.
            other => {
                let message = format!("the instruction {other:?} is not known");
                Err(Stop::Fatal(self.fatal("internal", message)))
            }
        }
    }
}
