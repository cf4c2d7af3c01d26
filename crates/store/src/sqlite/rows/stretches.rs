//! Ids that follow one another.

use outlast_core::id::InboxId;

/// Ids as the stretches they come in: those that follow one another without a gap are one.
pub(super) fn stretches(ids: &[InboxId]) -> Vec<(InboxId, InboxId)> {
    let mut stretches: Vec<(InboxId, InboxId)> = Vec::new();
    for id in ids {
        match stretches.last_mut() {
            Some((_, last)) if last.next() == *id => *last = *id,
            Some(_) | None => stretches.push((*id, *id)),
        }
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_is_in_exactly_one_stretch() {
        let of = |ids: &[u64]| {
            let ids: Vec<InboxId> = ids.iter().copied().map(InboxId).collect();
            stretches(&ids).into_iter().map(|(first, last)| (first.0, last.0)).collect::<Vec<_>>()
        };
        assert_eq!(of(&[]), []);
        assert_eq!(of(&[3]), [(3, 3)]);
        assert_eq!(of(&[3, 4, 5, 7, 9, 10]), [(3, 5), (7, 7), (9, 10)]);
        assert_eq!(of(&[5, 4, 3]), [(5, 5), (4, 4), (3, 3)]);
    }
}
