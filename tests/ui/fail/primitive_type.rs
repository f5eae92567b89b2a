use greenroom::prelude::*;

#[actor]
impl u64 {
    pub fn add(&mut self, by: u64) {}
}

#[actor]
impl str {
    pub fn len_of(&self) -> usize {
        1
    }
}

fn main() {}
