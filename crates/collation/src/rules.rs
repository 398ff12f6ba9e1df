//! The data of the rules of all languages, as they were compiled into the program, with one change: whether
//! accents compare from the end of a string.
//!
//! ICU4X has `backwards` in the data of a language alone (Canadian French has it), and MongoDB lets a
//! specification choose it. So these data are the compiled ones with that bit as it was chosen.

use icu_collator::provider::{
    Baked, CollationDiacriticsV1, CollationJamoV1, CollationMetadata, CollationMetadataV1,
    CollationReorderingV1, CollationRootV1, CollationSpecialPrimariesV1, CollationTailoringV1,
};
use icu_normalizer::provider::{Baked as NormalizerData, NormalizerNfdDataV1, NormalizerNfdTablesV1};
use icu_provider::prelude::{DataError, DataPayload, DataProvider, DataRequest, DataResponse};

use crate::specification::Backwards;

/// The bit of [`CollationMetadata::bits`] that says it, in the data of ICU4X 2.4. A test sees that it works.
const BACKWARD_SECOND_LEVEL: u32 = 1 << 7;

/// See the module's head.
pub(crate) struct Rules {
    pub backwards: Backwards,
}

impl DataProvider<CollationMetadataV1> for Rules {
    fn load(&self, request: DataRequest<'_>) -> Result<DataResponse<CollationMetadataV1>, DataError> {
        let compiled: DataResponse<CollationMetadataV1> = Baked.load(request)?;
        let CollationMetadata { bits } = *compiled.payload.get();
        let bits = match self.backwards {
            Backwards::On => bits | BACKWARD_SECOND_LEVEL,
            Backwards::Off => bits & !BACKWARD_SECOND_LEVEL,
        };
        Ok(DataResponse {
            metadata: compiled.metadata,
            payload: DataPayload::from_owned(CollationMetadata { bits }),
        })
    }
}

macro_rules! as_compiled {
    ($data:ident: $($marker:ident),*) => {$(
        impl DataProvider<$marker> for Rules {
            fn load(&self, request: DataRequest<'_>) -> Result<DataResponse<$marker>, DataError> {
                $data.load(request)
            }
        }
    )*};
}

as_compiled!(
    Baked: CollationSpecialPrimariesV1, CollationRootV1, CollationTailoringV1, CollationDiacriticsV1,
    CollationJamoV1, CollationReorderingV1
);
as_compiled!(NormalizerData: NormalizerNfdDataV1, NormalizerNfdTablesV1);
