//! Which addresses may be reached.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Blocks of IPv4 that are not of the public internet, by the registry of special-purpose addresses.
const NOT_PUBLIC_V4: [(Ipv4Addr, u32); 15] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),       // this host
    (Ipv4Addr::new(10, 0, 0, 0), 8),      // private
    (Ipv4Addr::new(100, 64, 0, 0), 10),   // carrier-grade NAT
    (Ipv4Addr::new(127, 0, 0, 0), 8),     // loopback
    (Ipv4Addr::new(169, 254, 0, 0), 16),  // link-local, metadata
    (Ipv4Addr::new(172, 16, 0, 0), 12),   // private
    (Ipv4Addr::new(192, 0, 0, 0), 24),    // protocol assignments
    (Ipv4Addr::new(192, 0, 2, 0), 24),    // documentation
    (Ipv4Addr::new(192, 88, 99, 0), 24),  // 6to4 relays
    (Ipv4Addr::new(192, 168, 0, 0), 16),  // private
    (Ipv4Addr::new(198, 18, 0, 0), 15),   // benchmarks
    (Ipv4Addr::new(198, 51, 100, 0), 24), // documentation
    (Ipv4Addr::new(203, 0, 113, 0), 24),  // documentation
    (Ipv4Addr::new(224, 0, 0, 0), 4),     // multicast
    (Ipv4Addr::new(240, 0, 0, 0), 4),     // reserved, broadcast
];

/// The only block of IPv6 that is handed out for the public internet: loopback, unique local, link-local, multicast, mapped
/// and unspecified addresses are all outside.
const PUBLIC_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Blocks inside it that are not public, or that stand for IPv4 addresses that may not be.
const NOT_PUBLIC_V6: [(Ipv6Addr, u32); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23), // protocol assignments, Teredo
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16), // 6to4
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20), // documentation
];

/// How networks with IPv6 only reach IPv4: the last 32 bits are the IPv4 address.
const NAT64: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// Whether an address is one of the public internet.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !NOT_PUBLIC_V4.iter().any(|(block, bits)| contains_v4(*block, *bits, v4)),
        IpAddr::V6(v6) if contains_v6(NAT64.0, NAT64.1, v6) => {
            let [.., a, b, c, d] = v6.octets();
            is_public(IpAddr::V4(Ipv4Addr::new(a, b, c, d)))
        }
        IpAddr::V6(v6) => {
            contains_v6(PUBLIC_V6.0, PUBLIC_V6.1, v6)
                && !NOT_PUBLIC_V6.iter().any(|(block, bits)| contains_v6(*block, *bits, v6))
        }
    }
}

fn contains_v4(block: Ipv4Addr, bits: u32, address: Ipv4Addr) -> bool {
    let differs = block.to_bits() ^ address.to_bits();
    differs.leading_zeros() >= bits
}

fn contains_v6(block: Ipv6Addr, bits: u32, address: Ipv6Addr) -> bool {
    let differs = block.to_bits() ^ address.to_bits();
    differs.leading_zeros() >= bits
}

/// What may be reached although it is not public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Allow {
    Block(IpAddr, u32),
    Host(String),
}

/// What was to be allowed is neither a host, nor an address, nor a block of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` cannot be allowed: give a host (`billing.internal`), an address (`10.1.2.3`) or a block of them (`10.1.0.0/16`)"
)]
pub struct InvalidAllow(String);

impl Allow {
    pub(super) fn parse(text: &str) -> Result<Allow, InvalidAllow> {
        let invalid = || InvalidAllow(text.to_owned());
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Allow::Block(address, if address.is_ipv4() { 32 } else { 128 }));
        }
        if let Some((address, bits)) = text.split_once('/') {
            let address: IpAddr = address.parse().map_err(|_| invalid())?;
            let bits: u32 = bits.parse().map_err(|_| invalid())?;
            let bits_max = if address.is_ipv4() { 32 } else { 128 };
            return if bits <= bits_max { Ok(Allow::Block(address, bits)) } else { Err(invalid()) };
        }
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        // A last part of digits would be an address that nobody wrote down as one.
        let last = text.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
        if last.is_empty() || last.starts_with(|letter: char| letter.is_ascii_digit()) || !text.chars().all(is_letter) {
            return Err(invalid());
        }
        Ok(Allow::Host(host(text)))
    }

    pub(super) fn covers_host(&self, name: &str) -> bool {
        matches!(self, Allow::Host(allowed) if *allowed == host(name))
    }

    /// An IPv4 address is also allowed as what IPv6 makes of it.
    pub(super) fn covers(&self, address: IpAddr) -> bool {
        match (self, address.to_canonical()) {
            (Allow::Block(IpAddr::V4(block), bits), IpAddr::V4(address)) => contains_v4(*block, *bits, address),
            (Allow::Block(IpAddr::V6(block), bits), IpAddr::V6(address)) => contains_v6(*block, *bits, address),
            (Allow::Block(..) | Allow::Host(_), IpAddr::V4(_) | IpAddr::V6(_)) => false,
        }
    }
}

/// A host's name in one way of writing it.
fn host(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn public(address: &str) -> bool {
        is_public(address.parse().unwrap())
    }

    #[test]
    fn public_addresses_are_public() {
        let addresses = [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2a00:1450::1",
            "2001:4860:4860::8888",
            "64:ff9b::808:808",
        ];
        for address in addresses {
            assert!(public(address), "{address}");
        }
    }

    #[test]
    fn addresses_that_are_not_of_the_public_internet_are_refused() {
        let addresses = [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "169.254.0.0",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "192.168.255.255",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::808:808",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
        ];
        for address in addresses {
            assert!(!public(address), "{address}");
        }
    }

    #[test]
    fn what_is_allowed_is_a_host_an_address_or_a_block() {
        let covers = |allow: &str, address: &str| Allow::parse(allow).unwrap().covers(address.parse().unwrap());
        assert!(covers("10.1.0.0/16", "10.1.255.255") && !covers("10.1.0.0/16", "10.2.0.0"));
        assert!(covers("127.0.0.1", "127.0.0.1") && !covers("127.0.0.1", "127.0.0.2"));
        assert!(covers("127.0.0.1", "::ffff:127.0.0.1") && !covers("127.0.0.1", "::1"));
        assert!(covers("fd00::/8", "fd12::1") && !covers("fd00::/8", "fe80::1"));
        assert!(covers("0.0.0.0/0", "10.0.0.1") && !covers("0.0.0.0/0", "::1"));
        assert!(!covers("billing.internal", "10.0.0.1"), "the host, and not its addresses under other names");
        assert!(Allow::parse("Billing.internal.").unwrap().covers_host("billing.INTERNAL"));
        assert!(!Allow::parse("internal").unwrap().covers_host("evil.internal"));
        assert!(!Allow::parse("10.0.0.1").unwrap().covers_host("10.0.0.1"));
    }

    #[test]
    fn what_is_neither_is_told() {
        for text in
            ["", ".", "10.0.0.0/33", "fd00::/129", "a/8", "http://x", "x:80", "x y", "127.1", "0x7f.0x1", "*.internal"]
        {
            assert_eq!(Allow::parse(text), Err(InvalidAllow(text.to_owned())), "{text}");
        }
    }
}
