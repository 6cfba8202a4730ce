//! How many connections each address has.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

/// How many connections one address may have.
const MOST: usize = 256;

/// Counts connections by the address of the client.
#[derive(Clone, Default)]
pub(super) struct Addresses(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// A connection that is counted until this is dropped.
pub(super) struct Counted {
    addresses: Addresses,
    address: IpAddr,
}

impl Addresses {
    /// Counts a connection, unless its address has too many.
    pub(super) fn enter(&self, client: IpAddr) -> Option<Counted> {
        let address = shared(client);
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_default();
        if *count >= MOST {
            return None;
        }
        *count += 1;
        Some(Counted {
            addresses: self.clone(),
            address,
        })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let counts = &self.addresses.0;
        let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

/// What one client has for itself: an IPv4 address, or the 64 bits of a network of IPv6.
fn shared(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let network = address.to_bits() >> 64 << 64;
            IpAddr::V6(network.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_so_many_connections_and_gets_them_back() {
        let addresses = Addresses::default();
        let enter = |client: &str| addresses.enter(client.parse().unwrap());
        let mut held: Vec<Counted> = (0..MOST).map_while(|_| enter("10.0.0.1")).collect();
        assert_eq!(held.len(), MOST);
        assert!(enter("10.0.0.1").is_none() && enter("::ffff:10.0.0.1").is_none());
        assert!(enter("10.0.0.2").is_some());
        held.pop();
        assert!(enter("10.0.0.1").is_some());
        drop(held);
        assert!(addresses.0.lock().unwrap().is_empty());
        let of_network = |last: usize| enter(&format!("2001:db8:0:1::{last:x}"));
        let held: Vec<Counted> = (0..MOST).map_while(of_network).collect();
        assert_eq!(held.len(), MOST);
        assert!(enter("2001:db8:0:1:ffff::").is_none() && enter("2001:db8:0:2::").is_some());
    }
}
