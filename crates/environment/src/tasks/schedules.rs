//! Schedules of a task with the threads that wake and stop it.

use std::sync::Arc;

use super::*;
use crate::sync::atomic::AtomicU64;
use crate::sync::{explore, thread};

#[test]
fn a_wake_that_comes_at_any_moment_leads_to_a_step_after_it() {
    explore(4_000, || {
        let (wanted, seen) = (Arc::new(AtomicU64::new(0)), Arc::new((Mutex::new(0), Condvar::new())));
        let (read, told) = (Arc::clone(&wanted), Arc::clone(&seen));
        let step = move || {
            *told.0.lock() = read.load(Ordering::SeqCst);
            told.1.notify_all();
            Step::Sleep
        };
        let task = ThreadSpawner.spawn("sleeper", Box::new(step)).expect("threads are there");
        let wakers: Vec<_> = (0..2)
            .map(|_| {
                let (wanted, waker) = (Arc::clone(&wanted), task.waker());
                thread::spawn(move || {
                    wanted.fetch_add(1, Ordering::SeqCst);
                    waker.wake();
                })
            })
            .collect();
        // A wake that is lost is a deadlock here.
        let mut step = seen.0.lock();
        while *step < 2 {
            seen.1.wait(&mut step);
        }
        drop(step);
        wakers.into_iter().for_each(|waker| waker.join().expect("it does not panic"));
    });
}

#[test]
fn after_stop_no_step_runs_whoever_wakes() {
    explore(4_000, || {
        let stopped = Arc::new(AtomicBool::new(false));
        let is_stopped = Arc::clone(&stopped);
        let step = move || {
            assert!(!is_stopped.load(Ordering::SeqCst), "a step after the end");
            Step::Wait(Duration::from_secs(1))
        };
        let task = ThreadSpawner.spawn("busy", Box::new(step)).expect("threads are there");
        let waker = task.waker();
        let woken = thread::spawn(move || waker.wake());
        task.stop();
        stopped.store(true, Ordering::SeqCst);
        woken.join().expect("it does not panic");
    });
}
