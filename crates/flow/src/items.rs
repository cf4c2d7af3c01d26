//! What a foreach goes over.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// The items of the iterations that are not over. The others are forgotten: neither memory nor a snapshot holds what nobody will
/// ask for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Items {
    /// The iteration of the first of them.
    first: u32,
    rest: VecDeque<Arc<Json>>,
}

impl Items {
    pub(crate) fn new(list: Vec<Json>) -> Items {
        Items { first: 0, rest: list.into_iter().map(Arc::new).collect() }
    }

    pub(crate) fn len(&self) -> usize {
        self.first as usize + self.rest.len()
    }

    pub(crate) fn get(&self, index: u32) -> Option<&Arc<Json>> {
        self.rest.get(index.checked_sub(self.first)? as usize)
    }

    /// Every iteration below this one is over.
    pub(crate) fn forget_below(&mut self, index: u32) {
        while self.first < index && self.rest.pop_front().is_some() {
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_item_is_there_until_everything_up_to_it_is_over() {
        let mut items = Items::new(vec![json!("a"), json!("b"), json!("c")]);
        items.forget_below(2);
        assert_eq!((items.get(1), items.get(2).map(|item| &**item), items.get(3)), (None, Some(&json!("c")), None));
        assert_eq!(items.len(), 3);
        items.forget_below(1);
        assert!(items.get(2).is_some(), "nothing comes back, and nothing more goes");
        items.forget_below(9);
        assert_eq!((items.get(2), items.len()), (None, 3));
    }
}
