//! The network between the nodes of a cluster: TCP proxies in front of their inter-broker and controller listeners.
//!
//! A node advertises the proxy in place of its own port, so that all that nodes say to each other passes here. Who
//! connected is found by the process that owns the other end of the socket, so one proxy a listener serves all
//! sources, and each direction between two nodes can be cut, slowed or delayed by itself. Bytes on a cut link are
//! held, as by a network that drops packets: connections stay open and go on when the link is whole again. What a node
//! that has died meanwhile had sent does not arrive any more: a dead machine repeats nothing.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::socket_owner::owner_of_local_port;

/// What one direction between two nodes does to the bytes on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Link {
    /// Nothing passes until it is whole again.
    pub cut: bool,
    /// Each piece of up to 16 KiB is held so long.
    pub delay: Duration,
    /// At most so many bytes a second, on each connection.
    pub bytes_per_second: Option<u32>,
}

/// From one node to another.
type Direction = (i32, i32);

#[derive(Debug, Default)]
struct State {
    links: BTreeMap<Direction, Link>,
    processes: BTreeMap<i32, u32>,
    /// How often each node's process has ended.
    deaths: BTreeMap<i32, u32>,
    ended: bool,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No holder of this lock can panic half-way through a change.
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn deaths_of(&self, node: i32) -> u32 {
        self.lock().deaths.get(&node).copied().unwrap_or(0)
    }

    /// Waits until bytes may pass in all of `directions`; gives the first of them and whether it had to wait, or
    /// `None` when the network has ended.
    fn wait_until_whole(&self, directions: &[Direction]) -> Option<(Link, bool)> {
        let mut state = self.lock();
        let mut waited = false;
        loop {
            if state.ended {
                return None;
            }
            let link = |direction| state.links.get(direction).copied().unwrap_or_default();
            if !directions.iter().any(|direction| link(direction).cut) {
                return Some((directions.first().map(link).unwrap_or_default(), waited));
            }
            waited = true;
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }
}

/// All proxies of one cluster; they end with it.
#[derive(Debug)]
pub struct Network {
    shared: Arc<Shared>,
    listeners: Vec<SocketAddr>,
}

impl Network {
    pub(super) fn new() -> Self {
        Self {
            shared: Arc::default(),
            listeners: Vec::new(),
        }
    }

    /// Listens on a port of its own and passes all to port `target` of `node`; gives the port to advertise.
    pub(super) fn add_proxy(&mut self, node: i32, target: u16) -> Result<u16> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        self.listeners.push(address);
        let shared = Arc::clone(&self.shared);
        thread::spawn(move || accept(&listener, node, target, &shared));
        Ok(address.port())
    }

    /// Says which process is a node now; without one, what its old process had open is of no node.
    pub(super) fn set_process(&self, node: i32, process: Option<u32>) {
        let mut state = self.shared.lock();
        match process {
            Some(process) => state.processes.insert(node, process),
            None => {
                *state.deaths.entry(node).or_default() += 1;
                state.processes.remove(&node)
            }
        };
    }

    /// Changes the direction `from` → `to`.
    pub fn set_link(&self, from: i32, to: i32, link: Link) {
        self.shared.lock().links.insert((from, to), link);
        self.shared.changed.notify_all();
    }

    /// Holds what `from` sends to `to`; the other direction stays as it is.
    pub fn cut_one_way(&self, from: i32, to: i32) {
        let cut = Link {
            cut: true,
            ..Link::default()
        };
        self.set_link(from, to, cut);
    }

    /// Holds what the two say to each other.
    pub fn cut(&self, one: i32, other: i32) {
        self.cut_one_way(one, other);
        self.cut_one_way(other, one);
    }

    /// Cuts every link between a node of `side` and one of `other_side`.
    pub fn partition(&self, side: &[i32], other_side: &[i32]) {
        for &one in side {
            for &other in other_side {
                self.cut(one, other);
            }
        }
    }

    /// Makes all links whole and quick again.
    pub fn heal(&self) {
        self.shared.lock().links.clear();
        self.shared.changed.notify_all();
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.changed.notify_all();
        // Wakes each accepting thread, which sees the end then.
        for listener in &self.listeners {
            TcpStream::connect_timeout(listener, Duration::from_secs(1)).ok();
        }
    }
}

fn accept(listener: &TcpListener, node: i32, target: u16, shared: &Arc<Shared>) {
    for incoming in listener.incoming() {
        if shared.lock().ended {
            return;
        }
        let Ok(incoming) = incoming else { continue };
        let shared = Arc::clone(shared);
        thread::spawn(move || connect(incoming, node, target, &shared));
    }
}

/// Serves one connection to `node`.
fn connect(incoming: TcpStream, node: i32, target: u16, shared: &Arc<Shared>) {
    let Ok(peer) = incoming.peer_addr() else {
        return;
    };
    let processes = shared.lock().processes.clone();
    // A connection of nobody we know, as one of the tests themselves, is never cut.
    let source = owner_of_local_port(peer.port(), &processes).unwrap_or(node);
    if shared
        .wait_until_whole(&[(source, node), (node, source)])
        .is_none()
    {
        return;
    }
    let Ok(outgoing) = TcpStream::connect(("127.0.0.1", target)) else {
        return;
    };
    incoming.set_nodelay(true).ok();
    outgoing.set_nodelay(true).ok();
    let (Ok(from), Ok(to)) = (incoming.try_clone(), outgoing.try_clone()) else {
        return;
    };
    let of_requests = Arc::clone(shared);
    thread::spawn(move || Pipe::new((source, node), of_requests).pass(from, to));
    Pipe::new((node, source), Arc::clone(shared)).pass(outgoing, incoming);
}

/// One direction of one connection.
struct Pipe {
    direction: Direction,
    /// How often the sender had died when it connected.
    deaths: u32,
    shared: Arc<Shared>,
}

impl Pipe {
    fn new(direction: Direction, shared: Arc<Shared>) -> Self {
        Self {
            direction,
            deaths: shared.deaths_of(direction.0),
            shared,
        }
    }

    /// Waits until bytes may pass; `None` when they never arrive.
    fn wait_until_whole(&self) -> Option<Link> {
        let (link, waited) = self.shared.wait_until_whole(&[self.direction])?;
        let died = self.shared.deaths_of(self.direction.0) != self.deaths;
        (!(waited && died)).then_some(link)
    }

    /// Passes bytes on as the link allows, up to the end of either stream.
    fn pass(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut piece = vec![0; 16 << 10];
        loop {
            let read = from.read(&mut piece).unwrap_or(0);
            let Some(link) = self.wait_until_whole() else {
                break;
            };
            if read == 0 {
                to.shutdown(Shutdown::Write).ok();
                return;
            }
            let at_this_rate = link
                .bytes_per_second
                .map(|rate| Duration::from_secs_f64(read as f64 / f64::from(rate.max(1))));
            thread::sleep(link.delay + at_this_rate.unwrap_or_default());
            // It may have been cut in the meantime.
            if self.wait_until_whole().is_none() || to.write_all(&piece[..read]).is_err() {
                break;
            }
        }
        from.shutdown(Shutdown::Both).ok();
        to.shutdown(Shutdown::Both).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An echoing server, and a proxy in front of it of which we are node 1 and it is node 2.
    fn echo() -> (Network, TcpStream) {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        thread::spawn(move || {
            for stream in server.incoming() {
                let mut stream = stream.unwrap();
                thread::spawn(move || {
                    let mut reader = stream.try_clone().unwrap();
                    std::io::copy(&mut reader, &mut stream).ok();
                });
            }
        });
        let mut network = Network::new();
        network.set_process(1, Some(std::process::id()));
        let proxy = network.add_proxy(2, port).unwrap();
        let client = TcpStream::connect(("127.0.0.1", proxy)).unwrap();
        (network, client)
    }

    fn say(client: &mut TcpStream, word: &[u8; 4]) {
        client.write_all(word).unwrap();
    }

    fn hears(client: &mut TcpStream, word: &[u8; 4], patience: Duration) -> bool {
        client.set_read_timeout(Some(patience)).unwrap();
        let mut heard = [0; 4];
        let read = client.read_exact(&mut heard);
        read.is_ok() && heard == *word
    }

    const LONG: Duration = Duration::from_secs(20);
    const SHORT: Duration = Duration::from_millis(100);

    #[test]
    fn bytes_on_a_cut_link_arrive_when_it_is_whole_again() {
        for cut in [
            |network: &Network| network.cut_one_way(1, 2),
            |network: &Network| network.cut_one_way(2, 1),
            |network: &Network| network.partition(&[1], &[2, 3]),
        ] {
            let (network, mut client) = echo();
            say(&mut client, b"one ");
            assert!(hears(&mut client, b"one ", LONG));
            cut(&network);
            say(&mut client, b"two ");
            assert!(!hears(&mut client, b"two ", SHORT));
            network.heal();
            assert!(hears(&mut client, b"two ", LONG));
        }
    }

    #[test]
    fn what_a_node_sent_over_a_cut_link_before_it_died_does_not_arrive() {
        let (network, mut client) = echo();
        say(&mut client, b"one ");
        assert!(hears(&mut client, b"one ", LONG));
        network.cut_one_way(2, 1);
        say(&mut client, b"two ");
        assert!(!hears(&mut client, b"two ", SHORT));
        network.set_process(2, None);
        network.heal();
        assert!(!hears(&mut client, b"two ", LONG), "a dead node answered");
        assert_eq!(
            client.read(&mut [0]).unwrap(),
            0,
            "the connection is closed"
        );
    }

    #[test]
    fn a_link_between_others_does_not_matter() {
        let (network, mut client) = echo();
        network.cut(1, 3);
        network.cut(2, 3);
        say(&mut client, b"word");
        assert!(hears(&mut client, b"word", LONG));
    }

    #[test]
    fn a_new_connection_over_a_cut_link_waits() {
        let (network, client) = echo();
        network.cut(1, 2);
        let mut late = TcpStream::connect(client.peer_addr().unwrap()).unwrap();
        say(&mut late, b"late");
        assert!(!hears(&mut late, b"late", SHORT));
        network.heal();
        assert!(hears(&mut late, b"late", LONG));
    }

    #[test]
    fn the_end_of_a_stream_is_passed_on() {
        let (_network, mut client) = echo();
        say(&mut client, b"last");
        client.shutdown(Shutdown::Write).unwrap();
        assert!(hears(&mut client, b"last", LONG));
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
    }
}
