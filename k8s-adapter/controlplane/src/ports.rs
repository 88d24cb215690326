//! The loopback ports of one control plane.
//!
//! On Linux a port stays ours as long as the control plane lives, also while its program is down: a
//! socket of ours is bound to it and never listens. Who connects is refused, the program may listen,
//! and the system gives the port to nobody else, neither as a free port nor as the near end of a
//! connection. On other systems that would keep the program out too, so there a port is only one that
//! was free a moment ago.

use std::{io, net::Ipv4Addr, os::fd::OwnedFd};

use crate::Error;

#[derive(Debug)]
pub(crate) struct Ports {
    pub(crate) etcd: u16,
    pub(crate) etcd_peer: u16,
    pub(crate) api_server: u16,
    pub(crate) controller_manager: u16,
    pub(crate) kwok: u16,
    pub(crate) scheduler: u16,
    /// Nobody asks for them; they are kept.
    _reservations: Vec<OwnedFd>,
}

impl Ports {
    /// Six different ones.
    pub(crate) fn reserve() -> Result<Self, Error> {
        let mut reservations = Vec::new();
        let mut next = || {
            let (reservation, port) = reserve().map_err(Error::io("find a free port"))?;
            // Kept until the last is found, so that they differ.
            reservations.push(reservation);
            Ok(port)
        };
        let (etcd, etcd_peer, api_server) = (next()?, next()?, next()?);
        let (controller_manager, kwok, scheduler) = (next()?, next()?, next()?);
        if cfg!(not(target_os = "linux")) {
            reservations.clear();
        }
        Ok(Self {
            etcd,
            etcd_peer,
            api_server,
            controller_manager,
            kwok,
            scheduler,
            _reservations: reservations,
        })
    }
}

#[cfg(target_os = "linux")]
fn reserve() -> io::Result<(OwnedFd, u16)> {
    use std::net::SocketAddrV4;

    use rustix::net::{
        AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt,
    };

    let socket = socket_with(
        AddressFamily::INET,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // With this on both sides a program may listen where somebody else is bound and does not listen.
    // Go's programs have it.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    let address = SocketAddrV4::try_from(getsockname(&socket)?)?;
    Ok((socket, address.port()))
}

#[cfg(not(target_os = "linux"))]
fn reserve() -> io::Result<(OwnedFd, u16)> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    Ok((listener.into(), port))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{SocketAddrV4, TcpListener, TcpStream};

    use rustix::{
        io::Errno,
        net::{AddressFamily, SocketType, bind, socket},
    };

    use super::*;

    /// A socket without the option that lets it share, as the system's own choices are.
    fn take(port: u16) -> Result<(), Errno> {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))
    }

    #[test]
    fn a_reserved_port_refuses_all_but_its_program() {
        let ports = Ports::reserve().expect("ports");
        let port = ports.api_server;
        let connect = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map_err(|e| e.kind());
        for _ in 0..2 {
            assert_eq!(take(port), Err(Errno::ADDRINUSE));
            assert_eq!(connect().err(), Some(io::ErrorKind::ConnectionRefused));
            // It listens as Go does, with the option to share.
            let program = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("to listen");
            connect().expect("a connection");
            drop(program);
        }
    }
}
