//! Which process owns the other end of a connection on this machine.

use std::collections::BTreeMap;
use std::fs;

/// The node whose process has a TCP socket bound to this local port.
pub(super) fn owner_of_local_port(port: u16, processes: &BTreeMap<i32, u32>) -> Option<i32> {
    let inode = inode_of_local_port(port)?;
    let socket = format!("socket:[{inode}]");
    let owns = |process: u32| {
        fs::read_dir(format!("/proc/{process}/fd")).is_ok_and(|descriptors| {
            descriptors.flatten().any(|descriptor| {
                fs::read_link(descriptor.path()).is_ok_and(|target| *target == *socket)
            })
        })
    };
    processes
        .iter()
        .find(|&(_, &process)| owns(process))
        .map(|(&node, _)| node)
}

/// The socket of the connection from this port; a JVM's sockets are of IPv6 also where they carry IPv4.
fn inode_of_local_port(port: u16) -> Option<u64> {
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .find_map(|table| inode_in(&table, port))
}

/// The inode in the line of the kernel's table whose local port this is and which is not a listening socket.
fn inode_in(table: &str, port: u16) -> Option<u64> {
    const LISTENING: &str = "0A";
    table.lines().skip(1).find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (_, local_port) = words.get(1)?.rsplit_once(':')?;
        let inode: u64 = words.get(9)?.parse().ok()?;
        let found = u16::from_str_radix(local_port, 16) == Ok(port);
        // What nobody holds any longer, as in TIME_WAIT, has inode 0.
        (found && words[3] != LISTENING && inode != 0).then_some(inode)
    })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn our_own_connection_is_found_and_a_stranger_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let port = client.local_addr().unwrap().port();
        let us = BTreeMap::from([(7, std::process::id())]);
        assert_eq!(owner_of_local_port(port, &us), Some(7));
        assert_eq!(owner_of_local_port(port, &BTreeMap::from([(7, 1)])), None);
        drop(client);
        assert_eq!(owner_of_local_port(port, &us), None);
    }

    #[test]
    fn the_local_side_counts_and_listening_sockets_do_not() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 0\n\
            1: 0100007F:2000 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 22 1 0\n\
            2: 0100007F:1F90 0100007F:2000 01 00000000:00000000 00:00000000 00000000     0        0 33 1 0\n";
        assert_eq!(inode_in(table, 0x2000), Some(22));
        assert_eq!(inode_in(table, 0x1F90), Some(33));
        assert_eq!(inode_in(table, 1), None);
    }
}
