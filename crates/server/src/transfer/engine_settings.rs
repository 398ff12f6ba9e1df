//! The settings of engines (`storageEngine`) in the options of collections and indexes that are copied. An
//! engine refuses the settings of another one, and with them all options of the collection. So they are left
//! out for a target of another engine, with a remark. The layout stays: it is not a matter of the engine.

use bson::{Bson, Document, doc};

use super::error::TransferError;
use super::import_plan::ImportPlan;
use super::shared_store::SharedStore;
use super::target::Target;

/// The engine of MongoDB, whose settings every server takes.
const TAKEN_EVERYWHERE: &str = "wiredTiger";
const FIELD: &str = "storageEngine";

/// The name of a store's engine, if it says one.
pub(super) fn engine_of(store: &SharedStore) -> Result<Option<String>, TransferError> {
    match store.clone().run("admin", doc! { "serverStatus": 1 }, None) {
        Ok(reply) => {
            let engine = reply.get_document(FIELD).and_then(|engine| engine.get_str("name"));
            Ok(engine.ok().map(str::to_owned))
        }
        Err(TransferError::Refused { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Leaves out the settings that the target's engine would refuse.
pub(super) fn fit_to(plan: &mut ImportPlan, engine: &str) {
    for unit in &mut plan.units {
        let mut left_out = Vec::new();
        fit(&mut unit.description.options, engine, &mut left_out);
        if let Ok(defaults) = unit.description.options.get_document_mut("indexOptionDefaults") {
            fit(defaults, engine, &mut left_out);
            if defaults.is_empty() {
                unit.description.options.remove("indexOptionDefaults");
            }
        }
        for index in &mut unit.description.indexes {
            fit(index, engine, &mut left_out);
        }
        left_out.sort();
        left_out.dedup();
        for other in left_out {
            plan.remarks.push(format!(
                "{}: settings of the engine {other} are left out, as the target's engine is {engine}",
                unit.namespace()
            ));
        }
    }
}

/// Does so for one document of options.
fn fit(options: &mut Document, engine: &str, left_out: &mut Vec<String>) {
    let Some(Bson::Document(settings)) = options.get_mut(FIELD) else { return };
    let is_foreign = |name: &&String| *name != TAKEN_EVERYWHERE && !name.eq_ignore_ascii_case(engine);
    let foreign: Vec<String> = settings.keys().filter(is_foreign).cloned().collect();
    for name in foreign {
        settings.remove(&name);
        left_out.push(name);
    }
    if settings.is_empty() {
        options.remove(FIELD);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::dump::Description;
    use crate::transfer::import_plan::Unit;

    #[test]
    fn settings_of_another_engine_are_left_out_and_told_and_the_layout_stays() {
        let options = doc! {
            "layout": "heap",
            "storageEngine": { "betree": { "compression": "lz4" }, "wiredTiger": { "configString": "a=b" } },
            "indexOptionDefaults": { "storageEngine": { "betree": { "pageSize": 4096 } } },
        };
        let index = doc! { "name": "n_1", "key": { "n": 1 }, "storageEngine": { "betree": { "fanout": 8 } } };
        let description = Description { options, indexes: vec![index], name: None };
        let unit = Unit {
            database: "shop".to_owned(),
            collection: "orders".to_owned(),
            description,
            ..Unit::default()
        };
        let plan = || ImportPlan { units: vec![unit.clone()], ..ImportPlan::default() };

        let mut other = plan();
        fit_to(&mut other, "lmdb");
        let fitted = &other.units[0].description;
        let kept = doc! { "layout": "heap", "storageEngine": { "wiredTiger": { "configString": "a=b" } } };
        assert_eq!(fitted.options, kept);
        assert_eq!(fitted.indexes, [doc! { "name": "n_1", "key": { "n": 1 } }]);
        assert_eq!(other.remarks.len(), 1, "{:?}", other.remarks);
        assert!(other.remarks[0].contains("shop.orders") && other.remarks[0].contains("betree"));

        let mut same = plan();
        fit_to(&mut same, "betree");
        assert_eq!(same.units[0].description.options, unit.description.options);
        assert!(same.remarks.is_empty());
    }
}
