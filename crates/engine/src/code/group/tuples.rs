//! Groups of operations of different kinds.

use std::task::{Context, Poll};

use outlast_core::failure::Failure;

use super::{Group, Member, Members, Settled};
use crate::code::operation::Operation;
use crate::error::Result;

macro_rules! tuples {
    ($($race:ident, $word:literal: $($operation:ident $place:tt $which:ident),+;)+) => {$(
        #[doc = concat!("Which of ", $word, " operations came first, and what it gave.")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $race<$($operation),+> {
            $(
                #[doc = concat!("The operation at place ", stringify!($place), ".")]
                $which($operation),
            )+
        }

        impl<$($operation: Operation),+> Group for ($($operation,)+) {
            type Values = ($($operation::Value,)+);
            type Outcomes = ($(Result<$operation::Value>,)+);
            type Winner = $race<$($operation::Value),+>;
            type Members = ($(Member<$operation>,)+);

            fn into_members(self) -> Self::Members {
                ($(Member::new(self.$place),)+)
            }
        }

        impl<$($operation: Operation),+> Members for ($(Member<$operation>,)+) {
            type Values = ($($operation::Value,)+);
            type Outcomes = ($(Result<$operation::Value>,)+);
            type Winner = $race<$($operation::Value),+>;

            fn count(&self) -> usize {
                [$($place),+].len()
            }

            fn poll(&mut self, place: usize, cx: &mut Context<'_>) -> Poll<Settled> {
                match place {
                    $($place => self.$place.poll(cx),)+
                    _ => Poll::Pending,
                }
            }

            fn take_winner(&mut self, place: usize) -> Option<Result<Self::Winner>> {
                match place {
                    $($place => Some(self.$place.outcome.take()?.map($race::$which)),)+
                    _ => None,
                }
            }

            fn take_values(&mut self) -> Option<Self::Values> {
                Some(($(self.$place.outcome.take()?.ok()?,)+))
            }

            fn take_outcomes(&mut self) -> Option<Self::Outcomes> {
                Some(($(self.$place.outcome.take()?,)+))
            }

            fn failures(&self) -> Vec<&Failure> {
                [$(self.$place.failure()),+].into_iter().flatten().collect()
            }

            fn abandon(&mut self) {
                $(self.$place.abandon();)+
            }
        }
    )+};
}

tuples! {
    Race2, "two": A 0 First, B 1 Second;
    Race3, "three": A 0 First, B 1 Second, C 2 Third;
    Race4, "four": A 0 First, B 1 Second, C 2 Third, D 3 Fourth;
    Race5, "five": A 0 First, B 1 Second, C 2 Third, D 3 Fourth, E 4 Fifth;
    Race6, "six": A 0 First, B 1 Second, C 2 Third, D 3 Fourth, E 4 Fifth, F 5 Sixth;
    Race7, "seven": A 0 First, B 1 Second, C 2 Third, D 3 Fourth, E 4 Fifth, F 5 Sixth, G 6 Seventh;
    Race8, "eight": A 0 First, B 1 Second, C 2 Third, D 3 Fourth, E 4 Fifth, F 5 Sixth, G 6 Seventh,
        H 7 Eighth;
}
