#[actor(mailbox = 64)]
impl Counter {
    /// Adds `by` and returns the new total.
    pub fn add(&mut self, by: u64) -> u64 {
        self.total += by;
        self.total
    }

    pub async fn take(&mut self, by: u64, ctx: &mut Ctx<Self>) -> Result<u64, String> {
        self.total = self.total.checked_sub(by).ok_or("too little")?;
        Ok(self.total)
    }

    #[message(local)]
    pub fn tag(&mut self, tag: Rc<str>, done: Reply<usize>) {
        done.send(tag.len());
    }

    #[on(started)]
    async fn open(&mut self) {}

    fn helper(&self) {}
}
