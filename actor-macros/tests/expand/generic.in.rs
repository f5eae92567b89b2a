#[actor(name = "cache", crate = my::greenroom)]
impl<K: Send, const N: usize> Cache<K, N>
where
    K: PartialEq<Self>,
{
    #[cfg(feature = "array")]
    pub(crate) fn fill(&mut self, (keys, _): ([K; N], [u8; Self::EXTRA])) -> Self {
        Self::from_keys(keys)
    }
}
