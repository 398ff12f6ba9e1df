//! A set of actions: one bit each.
//!
//! # Invariant
//! A set with [`Action::AnyAction`] has all actions. Without any one of them it loses `AnyAction`, too.

use std::fmt;

use crate::Action;

/// See the module's head.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct ActionSet {
    words: [u64; WORDS],
}

/// Words of bits that hold all actions.
const WORDS: usize = 3;

const _: () = assert!(Action::ALL.len() <= WORDS * 64, "each action has a bit");

impl ActionSet {
    /// No action.
    pub const EMPTY: ActionSet = ActionSet { words: [0; WORDS] };

    /// These actions.
    pub fn of(actions: &[Action]) -> ActionSet {
        let mut set = ActionSet::EMPTY;
        for action in actions {
            set.insert(*action);
        }
        set
    }

    /// Adds an action.
    pub fn insert(&mut self, action: Action) {
        if action == Action::AnyAction {
            for action in Action::ALL {
                self.set(*action);
            }
        }
        self.set(action);
    }

    fn set(&mut self, action: Action) {
        self.words[action as usize / 64] |= 1 << (action as usize % 64);
    }

    /// Adds the actions of another set.
    pub fn insert_all(&mut self, other: &ActionSet) {
        for (word, more) in self.words.iter_mut().zip(other.words) {
            *word |= more;
        }
    }

    /// Takes the actions of another set away.
    pub fn remove_all(&mut self, other: &ActionSet) {
        if other.is_empty() {
            return;
        }
        for (word, less) in self.words.iter_mut().zip(other.words) {
            *word &= !less;
        }
        self.words[Action::AnyAction as usize / 64] &= !(1 << (Action::AnyAction as usize % 64));
    }

    /// Whether an action is in it.
    #[inline]
    pub fn contains(&self, action: Action) -> bool {
        self.words[action as usize / 64] >> (action as usize % 64) & 1 == 1
    }

    /// Whether all of these actions are in it.
    pub fn contains_all(&self, other: &ActionSet) -> bool {
        self.words.iter().zip(other.words).all(|(word, wanted)| word & wanted == wanted)
    }

    /// Whether it has no action.
    pub fn is_empty(&self) -> bool {
        self.words == [0; WORDS]
    }

    /// The actions as privileges show them: `AnyAction` stands for all.
    pub fn shown(&self) -> impl Iterator<Item = Action> {
        let set = *self;
        let any = set.contains(Action::AnyAction);
        Action::ALL.iter().copied().filter(move |action| match any {
            true => *action == Action::AnyAction,
            false => set.contains(*action),
        })
    }
}

impl fmt::Debug for ActionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.shown()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_action_is_all_actions_until_one_is_taken_away() {
        let mut set = ActionSet::of(&[Action::AnyAction]);
        assert!(Action::ALL.iter().all(|action| set.contains(*action)));
        assert_eq!(set.shown().collect::<Vec<_>>(), [Action::AnyAction]);
        set.remove_all(&ActionSet::EMPTY);
        assert!(set.contains(Action::AnyAction));
        set.remove_all(&ActionSet::of(&[Action::Find]));
        assert_eq!(set.shown().count(), Action::ALL.len() - 2);
        assert!(!set.contains(Action::Find) && !set.contains(Action::AnyAction));
        assert!(set.contains(Action::ViewUser));
    }

    #[test]
    fn sets_are_joined_and_compared() {
        let mut set = ActionSet::of(&[Action::Find]);
        set.insert_all(&ActionSet::of(&[Action::ViewUser, Action::Insert]));
        assert!(set.contains_all(&ActionSet::of(&[Action::Find, Action::ViewUser])));
        assert!(!set.contains_all(&ActionSet::of(&[Action::Find, Action::Remove])));
        assert!(!set.is_empty() && ActionSet::EMPTY.is_empty());
    }
}
