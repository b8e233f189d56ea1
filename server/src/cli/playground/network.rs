//! The network between the nodes: TCP proxies in front of their listeners for other nodes, whose links can be cut in
//! each direction, and slowed.
//!
//! A connection's source is known by the client id in its first request, which names the node that sends it. Bytes on a
//! cut link are held, as by a network that drops packets: connections stay open and go on when it is whole again. What
//! a process that has ended had sent does not arrive any more.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// Bytes that are passed on at once.
const PIECE_BYTES: usize = 16 * 1024;
/// Bytes of a first request up to its client id's length, and the longest client id that is looked at.
const BEFORE_CLIENT_ID: usize = 4 + 2 + 2 + 4 + 2;
const MAX_CLIENT_ID: usize = 128;
/// Time for the first request of a connection to come.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Rest after a failed accept.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// From one node to another.
pub(super) type Direction = (i32, i32);

/// What happens to the bytes of each direction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Links {
    /// Directions on which nothing passes.
    cut: std::collections::BTreeSet<Direction>,
    /// Bytes a second, where they are limited.
    slow: BTreeMap<Direction, u32>,
    /// How often the process of a node has ended.
    ends: BTreeMap<i32, u32>,
}

impl Links {
    /// Whether nothing passes from one node to another.
    pub(super) fn is_cut(&self, direction: Direction) -> bool {
        self.cut.contains(&direction)
    }

    /// Whether nothing passes one way or the other.
    pub(super) fn is_cut_between(&self, one: i32, other: i32) -> bool {
        self.is_cut((one, other)) || self.is_cut((other, one))
    }

    /// Whether a direction is slowed.
    pub(super) fn is_slow(&self, direction: Direction) -> bool {
        self.slow.contains_key(&direction)
    }

    /// Cuts a direction, or makes it whole.
    pub(super) fn set_cut(&mut self, direction: Direction, is_cut: bool) {
        if is_cut {
            self.cut.insert(direction);
        } else {
            self.cut.remove(&direction);
        }
    }

    /// Limits a direction to so many bytes a second, or does not.
    pub(super) fn set_slow(&mut self, direction: Direction, bytes_per_second: Option<u32>) {
        match bytes_per_second {
            Some(bytes) => self.slow.insert(direction, bytes.max(1)),
            None => self.slow.remove(&direction),
        };
    }

    /// Makes all links whole and quick.
    pub(super) fn heal(&mut self) {
        self.cut.clear();
        self.slow.clear();
    }

    fn ends_of(&self, (from, to): Direction) -> [Option<u32>; 2] {
        [self.ends.get(&from).copied(), self.ends.get(&to).copied()]
    }
}

/// All proxies; they end with the runtime.
#[derive(Debug, Clone)]
pub(super) struct Network {
    links: watch::Sender<Links>,
}

impl Network {
    pub(super) fn new() -> Self {
        Network {
            links: watch::Sender::default(),
        }
    }

    /// Listens on a port of its own and passes all to port `target` of `node`; gives the port to advertise. Must run
    /// inside a tokio runtime.
    ///
    /// # Errors
    /// When there is no free port.
    pub(super) async fn add_proxy(&self, node: i32, target: u16) -> io::Result<u16> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let links = self.links.clone();
        tokio::spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((incoming, _)) => {
                        let links = links.subscribe();
                        tokio::spawn(async move {
                            if let Err(error) = connect(incoming, node, target, links).await {
                                tracing::debug!(node, %error, "a connection between nodes ended");
                            }
                        });
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection between nodes");
                        sleep(ACCEPT_RETRY).await;
                    }
                }
            }
        });
        Ok(port)
    }

    /// The links as they are.
    pub(super) fn links(&self) -> Links {
        self.links.borrow().clone()
    }

    /// Changes links.
    pub(super) fn change(&self, change: impl FnOnce(&mut Links)) {
        self.links.send_modify(change);
    }

    /// The process of a node has ended: its connections end too, with all that is held of them.
    pub(super) fn on_process_end(&self, node: i32) {
        self.links.send_modify(|links| {
            *links.ends.entry(node).or_default() += 1;
        });
    }
}

/// Serves one connection to `node`.
async fn connect(
    mut incoming: TcpStream,
    node: i32,
    target: u16,
    mut links: watch::Receiver<Links>,
) -> io::Result<()> {
    incoming.set_nodelay(true)?;
    let first = timeout(FIRST_REQUEST_TIMEOUT, first_request(&mut incoming)).await??;
    // A connection of nobody we know is never cut.
    let source = source_of(&first).unwrap_or(node);
    let (there, back) = ((source, node), (node, source));
    let ends = links.borrow().ends_of(there);
    let of_pipes = links.clone();
    let served = async {
        let mut whole = of_pipes;
        // As for a network that drops packets, no connection comes about while either direction is cut.
        wait(&mut whole, |links| !links.is_cut_between(source, node)).await;
        let outgoing = TcpStream::connect((Ipv4Addr::LOCALHOST, target)).await?;
        outgoing.set_nodelay(true)?;
        let (from, to) = incoming.into_split();
        let (back_from, back_to) = outgoing.into_split();
        let requests = pass(first, from, back_to, there, whole.clone());
        let responses = pass(Vec::new(), back_from, to, back, whole);
        tokio::try_join!(requests, responses).map(drop)
    };
    tokio::select! {
        // First: what was held is not passed on when the links become whole at the same time.
        biased;
        () = wait(&mut links, |links| links.ends_of(there) != ends) => Ok(()),
        served = served => served,
    }
}

/// Waits until the links are so; for ever when there is no network any more.
async fn wait(links: &mut watch::Receiver<Links>, is_so: impl Fn(&Links) -> bool) {
    if links.wait_for(|links| is_so(links)).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// The bytes of the first request up to the end of its client id, or a few more.
async fn first_request(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; BEFORE_CLIENT_ID];
    stream.read_exact(&mut bytes).await?;
    let length = i16::from_be_bytes([bytes[BEFORE_CLIENT_ID - 2], bytes[BEFORE_CLIENT_ID - 1]]);
    let length = usize::try_from(length).unwrap_or(0).min(MAX_CLIENT_ID);
    let mut client_id = vec![0; length];
    stream.read_exact(&mut client_id).await?;
    bytes.append(&mut client_id);
    Ok(bytes)
}

/// Which node sent a request: brokers name themselves `broker-2-fetcher`, `metadata-observer-2` or `2`.
fn source_of(first_request: &[u8]) -> Option<i32> {
    let client_id = first_request.get(BEFORE_CLIENT_ID..)?;
    let client_id = std::str::from_utf8(client_id).ok()?;
    let id = client_id
        .strip_prefix("broker-")
        .or_else(|| client_id.strip_prefix("metadata-observer-"))
        .unwrap_or(client_id);
    let digits = id.split('-').next()?;
    digits.parse().ok().filter(|id| *id > 0)
}

/// Passes on `first`, then what is read, as the link allows, up to the end.
async fn pass(
    first: Vec<u8>,
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    direction: Direction,
    mut links: watch::Receiver<Links>,
) -> io::Result<()> {
    let mut piece = first;
    loop {
        if !piece.is_empty() {
            wait(&mut links, |links| !links.is_cut(direction)).await;
            let rate = links.borrow().slow.get(&direction).copied();
            if let Some(rate) = rate {
                let time = Duration::from_secs_f64(piece.len() as f64 / f64::from(rate));
                // A piece on its way goes on at once when the link is quick again.
                tokio::select! {
                    () = sleep(time) => {}
                    () = wait(&mut links, |links| !links.is_slow(direction)) => {}
                }
                wait(&mut links, |links| !links.is_cut(direction)).await;
            }
            to.write_all(&piece).await?;
        }
        piece.resize(PIECE_BYTES, 0);
        let read = from.read(&mut piece).await?;
        if read == 0 {
            wait(&mut links, |links| !links.is_cut(direction)).await;
            return to.shutdown().await;
        }
        piece.truncate(read);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(100);
    const LONG: Duration = Duration::from_secs(20);

    fn request(client_id: &str) -> Vec<u8> {
        let mut request = vec![0; BEFORE_CLIENT_ID - 2];
        request.extend(i16::try_from(client_id.len()).expect("short").to_be_bytes());
        request.extend(client_id.as_bytes());
        request
    }

    #[test]
    fn a_node_is_known_by_its_client_id() {
        for (client_id, source) in [
            ("broker-2-fetcher", Some(2)),
            ("broker-3-console", Some(3)),
            ("metadata-observer-1", Some(1)),
            ("1", Some(1)),
            ("kcat", None),
            ("", None),
            ("broker-x", None),
        ] {
            assert_eq!(source_of(&request(client_id)), source, "{client_id}");
        }
    }

    /// An echoing server that is node 1, and a connection of node 2 to it that has said who it is.
    async fn echo() -> (Network, TcpStream) {
        let server = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let port = server.local_addr().expect("an address").port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = server.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = stream.split();
                    let _ = tokio::io::copy(&mut from, &mut to).await;
                });
            }
        });
        let network = Network::new();
        let proxy = network.add_proxy(1, port).await.expect("a port");
        let mut client = TcpStream::connect(("127.0.0.1", proxy))
            .await
            .expect("connected");
        let hello = request("broker-2-fetcher");
        client.write_all(&hello).await.expect("sent");
        let mut heard = vec![0; hello.len()];
        client.read_exact(&mut heard).await.expect("echoed");
        (network, client)
    }

    async fn hears(client: &mut TcpStream, word: &[u8; 4], patience: Duration) -> bool {
        let mut heard = [0; 4];
        let read = timeout(patience, client.read_exact(&mut heard)).await;
        matches!(read, Ok(Ok(_))) && heard == *word
    }

    #[tokio::test]
    async fn bytes_on_a_cut_link_arrive_when_it_is_whole_again() {
        for direction in [(1, 2), (2, 1)] {
            let (network, mut client) = echo().await;
            network.change(|links| links.set_cut(direction, true));
            client.write_all(b"word").await.expect("sent");
            assert!(!hears(&mut client, b"word", SHORT).await, "{direction:?}");
            network.change(Links::heal);
            assert!(hears(&mut client, b"word", LONG).await, "{direction:?}");
        }
    }

    #[tokio::test]
    async fn a_link_between_others_does_not_matter() {
        let (network, mut client) = echo().await;
        network.change(|links| links.set_cut((1, 3), true));
        client.write_all(b"word").await.expect("sent");
        assert!(hears(&mut client, b"word", LONG).await);
    }

    #[tokio::test]
    async fn what_a_process_sent_before_it_ended_does_not_arrive() {
        let (network, mut client) = echo().await;
        network.change(|links| links.set_cut((1, 2), true));
        client.write_all(b"word").await.expect("sent");
        assert!(!hears(&mut client, b"word", SHORT).await);
        network.on_process_end(1);
        network.change(Links::heal);
        assert_eq!(client.read(&mut [0]).await.unwrap_or(0), 0, "it is closed");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_link_passes_so_many_bytes_a_second() {
        let (near, mut far) = tokio::io::duplex(1024);
        let network = Network::new();
        network.change(|links| links.set_slow((1, 2), Some(100)));
        let links = network.links.subscribe();
        let began = tokio::time::Instant::now();
        let source = std::io::Cursor::new(vec![7; 500]);
        tokio::spawn(pass(Vec::new(), source, near, (1, 2), links));
        let mut all = Vec::new();
        far.read_to_end(&mut all).await.expect("all");
        assert_eq!(all.len(), 500);
        assert!(began.elapsed() >= Duration::from_secs(5));
    }
}
