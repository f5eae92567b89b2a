#[allow(
    clippy::large_types_passed_by_value,
    clippy::missing_const_for_fn,
    clippy::must_use_candidate,
    clippy::needless_pass_by_ref_mut,
    clippy::needless_pass_by_value,
    clippy::unused_self
)]
impl<K: Send, const N: usize> Cache<K, N>
where
    K: PartialEq<Self>,
{
    #[cfg(feature = "array")]
    pub(crate) fn fill(&mut self, (keys, _): ([K; N], [u8; Self::EXTRA])) -> Self {
        Self::from_keys(keys)
    }
}
#[doc(hidden)]
#[allow(
    dead_code,
    deprecated,
    non_snake_case,
    unreachable_code,
    clippy::all,
    clippy::pedantic,
    clippy::future_not_send
)]
const _: () = {
    use __rt::short::{
        __Call, __Flat, __Message, __Name, __Plain, __Reply, __Suits, __answer, __carried,
    };
    use my::greenroom::__rt;
    pub enum __CacheMsg<K: Send, const N: usize>
    where
        K: PartialEq<Cache<K, N>>,
        K: 'static,
    {
        #[cfg(feature = "array")]
        fill(
            __rt::Cross<([K; N], [u8; <Cache<K, N>>::EXTRA])>,
            __rt::CrossReply<Cache<K, N>>,
        ),
        __Phantom(
            __rt::core::convert::Infallible,
            __rt::core::marker::PhantomData<(fn() -> *const K,)>,
        ),
    }
    #[automatically_derived]
    impl<K: Send, const N: usize> __rt::Carries for __CacheMsg<K, N>
    where
        K: PartialEq<Cache<K, N>>,
        K: 'static,
    {
        fn carried(&self) -> __rt::Carried<'_> {
            match self {
                #[cfg(feature = "array")]
                Self::fill(.., reply) => __carried(reply, &"fill"),
                _ => __rt::unexpected(),
            }
        }
    }
    pub struct __CacheClient<__P>(__P);
    #[automatically_derived]
    impl<__P: __rt::Way> __rt::Clone for __CacheClient<__P> {
        #[inline]
        fn clone(&self) -> Self {
            *self
        }
    }
    impl<__P: __rt::Way> __rt::Copy for __CacheClient<__P> {}
    #[automatically_derived]
    impl<__P: __rt::Way> __rt::FromPort<__P> for __CacheClient<__P> {
        #[inline]
        fn from_port(port: __P) -> Self {
            Self(port)
        }
        #[inline]
        fn port(&self) -> __P {
            self.0
        }
    }
    impl<K: Send, const N: usize, __P: __rt::Way<Actor = Cache<K, N>>> __CacheClient<__P>
    where
        K: PartialEq<Cache<K, N>>,
        K: 'static,
    {
        #[cfg(feature = "array")]
        pub(crate) fn fill(
            &self,
            arg0: ([K; N], [u8; <Cache<K, N>>::EXTRA]),
        ) -> __Call<
            __P,
            __Plain<Cache<K, N>>,
            (([K; N], [u8; <Cache<K, N>>::EXTRA]),),
            __m_fill<K, N>,
        >
        where
            (([K; N], [u8; <Cache<K, N>>::EXTRA]),): __Suits<__P>,
        {
            __rt::Way::call::<_, _, __m_fill<K, N>>(self.0, (arg0,))
        }
    }
    #[cfg(feature = "array")]
    pub enum __m_fill<K: Send, const N: usize>
    where
        K: PartialEq<Cache<K, N>>,
        K: 'static,
    {
        __Phantom(
            __rt::core::convert::Infallible,
            __rt::core::marker::PhantomData<(fn() -> *const K,)>,
        ),
    }
    #[cfg(feature = "array")]
    impl<K: Send, const N: usize>
        __Message<__Plain<Cache<K, N>>, (([K; N], [u8; <Cache<K, N>>::EXTRA]),)> for __m_fill<K, N>
    where
        K: PartialEq<Cache<K, N>>,
        K: 'static,
    {
        type Of = __CacheMsg<K, N>;
        const NAME: __Name = "fill";
        #[inline]
        fn build(
            args: (([K; N], [u8; <Cache<K, N>>::EXTRA]),),
            reply: __Reply<Cache<K, N>>,
        ) -> Self::Of {
            __CacheMsg::fill(__rt::Cross::new(args.0), __rt::Cross::reply(reply))
        }
    }
    #[automatically_derived]
    impl<K: Send, const N: usize> __rt::Actor for Cache<K, N>
    where
        K: PartialEq<Cache<K, N>>,
        K: 'static,
    {
        type Msg = __CacheMsg<K, N>;
        type LocalMsg = __CacheMsg<K, N>;
        type Client<__P: __rt::Way<Actor = Self>> = __CacheClient<__P>;
        const NAME: &'static __rt::str = "cache";
        #[inline]
        fn dispatch_now(
            &mut self,
            msg: Self::LocalMsg,
            ctx: &mut __rt::Ctx<Self>,
        ) -> __rt::Option<Self::LocalMsg> {
            match msg {
                #[cfg(feature = "array")]
                __CacheMsg::fill(a0, reply) => __answer(reply.get(), Self::fill(self, a0.get())),
                msg => return __rt::Some(msg),
            }
            __rt::None
        }
    }
};
