//! Ending a server.

use tokio::sync::watch;

/// Ends a server from another thread.
///
/// ```
/// let stop = polybook::serve::Stop::default();
/// let other = stop.clone();
/// std::thread::spawn(move || other.stop());
/// ```
#[derive(Clone, Debug)]
pub struct Stop(watch::Sender<bool>);

impl Default for Stop {
    fn default() -> Stop {
        Stop(watch::Sender::new(false))
    }
}

impl Stop {
    /// Takes no more requests. Returns at once.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    pub(super) async fn stopped(&self) {
        // The channel is open as long as `self` is there.
        let _ = self.0.subscribe().wait_for(|stopped| *stopped).await;
    }
}
