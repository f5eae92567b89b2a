//! An actor inside a function, next to another one of the same name.

#![forbid(unsafe_code)]
#![deny(warnings)]

use greenroom::prelude::*;

struct Worker;

#[actor]
impl Worker {
    pub fn outer(&self) {}
}

fn inner() {
    struct Job(u8);
    struct Worker(Vec<Job>);

    #[actor(name = "inner worker")]
    impl Worker {
        pub fn inner(&mut self, job: Job) -> u8 {
            let id = job.0;
            self.0.push(job);
            id
        }
    }

    fn calls(address: Addr<Worker>) {
        drop(address.inner(Job(1)));
    }

    let _ = calls;
    assert_eq!(<Worker as greenroom::Actor>::NAME, "inner worker");
}

fn calls(address: Addr<Worker>) {
    drop(address.outer());
}

fn main() {
    let _ = calls;
    inner();
}
