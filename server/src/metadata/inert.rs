//! What the metadata hold that this release cannot act on, and what is done about it: a broker under other controllers
//! says so and goes on; a controller, which would be the one to keep the rules, does not start.

use std::collections::BTreeSet;
use std::path::Path;

use highwater_replication::cluster::ClusterImage;
use highwater_replication::cluster::inert::InertKind;

use super::MetadataError;

/// Says once of each kind that it is kept and not acted on.
#[derive(Debug, Default)]
pub(crate) struct InertNotices {
    told: BTreeSet<InertKind>,
}

impl InertNotices {
    /// Looks at a new image; gives the kinds that were told of now.
    pub(crate) fn on_image(&mut self, image: &ClusterImage) -> Vec<InertKind> {
        let kinds = image.inert_kinds().into_iter();
        let new: Vec<InertKind> = kinds.filter(|kind| self.told.insert(*kind)).collect();
        for kind in &new {
            let what = name(*kind);
            match kind {
                InertKind::AccessControlEntry => tracing::error!(
                    what,
                    "the cluster has access control lists, and this broker does not check them: EVERYBODY who reaches \
                     its listeners may do everything. Let only trusted clients reach it"
                ),
                InertKind::ClientQuota
                | InertKind::UserScramCredential
                | InertKind::DelegationToken => tracing::warn!(
                    what,
                    "the cluster's metadata hold what this broker keeps but does not act on"
                ),
            }
        }
        new
    }
}

/// Refuses to be the controller of a cluster whose rules this release does not keep.
///
/// # Errors
/// When there are such records.
pub(crate) fn refuse_inert(image: &ClusterImage, dir: &Path) -> Result<(), MetadataError> {
    let names: Vec<&str> = image.inert_kinds().into_iter().map(name).collect();
    if names.is_empty() {
        return Ok(());
    }
    Err(MetadataError::Corrupt {
        path: dir.display().to_string(),
        reason: format!(
            "the metadata hold {}, which this release cannot keep to as a controller",
            names.join(", ")
        ),
    })
}

fn name(kind: InertKind) -> &'static str {
    match kind {
        InertKind::AccessControlEntry => "access control lists",
        InertKind::ClientQuota => "client quotas",
        InertKind::UserScramCredential => "SCRAM credentials",
        InertKind::DelegationToken => "delegation tokens",
    }
}

#[cfg(test)]
mod tests {
    use highwater_replication::cluster::MetadataRecord;

    use super::*;

    #[test]
    fn each_kind_is_told_once_and_no_controller_starts_with_it() {
        let empty = ClusterImage::empty("c");
        let mut notices = InertNotices::default();
        assert_eq!(notices.on_image(&empty), []);
        refuse_inert(&empty, Path::new("x")).expect("nothing is there");
        // An access control entry: its id, the rest empty.
        let mut entry = vec![1, 18, 0];
        entry.extend_from_slice(&[7; 16]);
        entry.extend_from_slice(&[2, 1, 3, 1, 1, 3, 3, 0]);
        let entry = MetadataRecord::decode(&entry).expect("kept");
        let (image, _) = empty.apply(&[entry], 0, 1).expect("it fits");
        assert_eq!(notices.on_image(&image), [InertKind::AccessControlEntry]);
        assert_eq!(notices.on_image(&image), []);
        let refused = refuse_inert(&image, Path::new("x")).expect_err("refused");
        assert!(refused.to_string().contains("access control"), "{refused}");
    }
}
