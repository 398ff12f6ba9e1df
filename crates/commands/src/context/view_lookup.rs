//! The look-up of views as a request reads them.

use std::sync::Arc;

use pando_catalog::{Collection, Namespace, VIEWS_COLLECTION};
use pando_document::RawValue;
use pando_query::time_series::{BUCKETS_PREFIX, Series};

use super::Context;
use crate::CommandError;
use crate::views::{ResolvedView, View, ViewReader, not_a_collection, not_a_plain_collection, views_of};

impl Context<'_> {
    /// Looks for views of a database as a statement reads it. `None`: it has none.
    fn with_views<T>(
        &self,
        database: &str,
        look: impl FnOnce(ViewReader<'_>) -> Result<Option<T>, CommandError>,
    ) -> Result<Option<T>, CommandError> {
        if self.catalog().collection(database, VIEWS_COLLECTION).is_none() {
            return Ok(None);
        }
        let reader = self.reader()?;
        let held = reader.hold()?;
        let (catalog, blocking) = (self.catalog(), self.blocking);
        look(ViewReader { catalog, held: &held, database, blocking })
    }

    /// The collection of buckets of the time series of this name, and the series.
    pub fn series(&self, name: &str) -> Result<Option<(Arc<Collection>, Series)>, CommandError> {
        self.series_in(self.database, name)
    }

    /// The same of a namespace, which may be one of another database.
    pub fn series_of(
        &self,
        namespace: &Namespace,
    ) -> Result<Option<(Arc<Collection>, Series)>, CommandError> {
        self.series_in(namespace.database(), namespace.collection())
    }

    fn series_in(
        &self,
        database: &str,
        name: &str,
    ) -> Result<Option<(Arc<Collection>, Series)>, CommandError> {
        let buckets = self.catalog().collection(database, &format!("{BUCKETS_PREFIX}{name}"));
        let Some(buckets) = buckets else { return Ok(None) };
        let series = match buckets.options().get("timeseries")? {
            Some(RawValue::Document(options)) => Series::of(options),
            _ => None,
        };
        Ok(series.map(|series| (buckets, series)))
    }

    /// The view of this name in the database of the request.
    pub fn view(&self, name: &str) -> Result<Option<View>, CommandError> {
        self.with_views(self.database, |views| views.find(name))
    }

    /// Whether a view has the name, in any database.
    pub fn is_view(&self, namespace: &Namespace) -> Result<bool, CommandError> {
        let found = self.with_views(namespace.database(), |views| views.find(namespace.collection()))?;
        Ok(found.is_some())
    }

    /// Whether the name is that of a time series whose view is there, in any database.
    pub fn is_series_view(&self, namespace: &Namespace) -> Result<bool, CommandError> {
        let view = self.with_views(namespace.database(), |views| views.find(namespace.collection()))?;
        Ok(view.is_some_and(|view| view.on.strip_prefix(BUCKETS_PREFIX) == Some(namespace.collection())))
    }

    /// The view of this name, for a request that reads it. The parts of one request ask for it in turn and
    /// see one definition, since a look costs a begin and a read.
    pub fn view_to_read(&self, name: &str) -> Result<Option<View>, CommandError> {
        if let Some((of, view)) = &*self.read_view.borrow()
            && of == name
        {
            return Ok(Some(view.clone()));
        }
        let found = self.view(name)?;
        *self.read_view.borrow_mut() = found.clone().map(|view| (name.to_owned(), view));
        Ok(found)
    }

    /// The views of the database of the request, in the order of their names. Blocks, unless there are none.
    pub fn views(&self) -> Result<Vec<(String, View)>, CommandError> {
        let Some(definitions) = self.catalog().collection(self.database, VIEWS_COLLECTION) else {
            return Ok(Vec::new());
        };
        self.require_may_block()?;
        let reader = self.begin_read()?;
        let found = views_of(&definitions, &*reader, self.operation);
        reader.rollback();
        found
    }

    /// The collection below the view of this name, which no collection has, for a request that reads it.
    pub fn resolve_view(&self, name: &str) -> Result<Option<ResolvedView>, CommandError> {
        let Some(view) = self.view_to_read(name)? else { return Ok(None) };
        if self.collection(&view.on)?.is_some() {
            return Ok(Some(ResolvedView::of(view)));
        }
        self.with_views(self.database, |views| views.follow(view).map(Some))
    }

    /// Refuses a name that is one of a view.
    pub fn refuse_view(&self, namespace: &Namespace) -> Result<(), CommandError> {
        match self.with_views(namespace.database(), |views| views.find(namespace.collection()))? {
            Some(view) if view.on.starts_with(BUCKETS_PREFIX) => Err(not_a_plain_collection(namespace)),
            Some(_) => Err(not_a_collection(namespace)),
            None => Ok(()),
        }
    }

    /// The collection of this name now, for a command that is not for views.
    pub fn no_view(&self, namespace: &Namespace) -> Result<Option<Arc<Collection>>, CommandError> {
        let found = self.catalog().collection(namespace.database(), namespace.collection());
        if found.is_none() {
            self.refuse_view(namespace)?;
        }
        Ok(found)
    }
}
