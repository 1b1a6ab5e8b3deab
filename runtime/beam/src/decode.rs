//! Decodes the bytes of a file to a checked [`BeamModule`].

use super::chunks::{Chunks, unpack};
use super::error::{BeamError, BeamErrorKind};
use super::module::{BeamModule, ByteTable};
use super::{code, debug, tables};

impl BeamModule {
    /// Reads and checks a `.beam` file, plain or compressed with gzip.
    ///
    /// # Errors
    /// The first thing found wrong, with chunk and offset. Memory stays within a small multiple of
    /// the (unpacked) file's size, whatever the file says.
    pub fn decode(file: &[u8]) -> Result<BeamModule, BeamError> {
        let file = unpack(file)?;
        Self::from_chunks(&Chunks::parse(&file)?)
    }

    fn from_chunks(chunks: &Chunks<'_>) -> Result<BeamModule, BeamError> {
        for id in [b"Code", b"AtU8", b"ImpT", b"ExpT"] {
            if chunks.get(id).is_empty() {
                let old = id == b"AtU8" && !chunks.get(b"Atom").is_empty();
                let kind = if old {
                    BeamErrorKind::ObsoleteAtomTable
                } else {
                    BeamErrorKind::MissingChunk
                };
                return Err(BeamError {
                    chunk: *id,
                    offset: 0,
                    kind,
                });
            }
        }
        let header = code::Header::parse(chunks)?;
        let atoms = tables::atoms(chunks)?;
        let imports = tables::imports(chunks, atoms.len())?;
        let exports = tables::exports(chunks, b"ExpT", atoms.len(), header.label_count)?;
        let locals = tables::exports(chunks, b"LocT", atoms.len(), header.label_count)?;
        let lambdas = tables::lambdas(chunks, atoms.len(), header.label_count)?;
        let literals = tables::literals(chunks)?;
        let lines = tables::lines(chunks, atoms.get(1))?;
        let types = tables::types(chunks)?;
        let mut module = BeamModule {
            name: 1,
            atoms,
            imports,
            exports,
            locals,
            lambdas,
            literals,
            strings: chunks.get(b"StrT").to_vec(),
            lines,
            types,
            records: Vec::new(),
            attributes: chunks.get(b"Attr").to_vec(),
            compile_info: chunks.get(b"CInf").to_vec(),
            debug: Vec::new(),
            md5: chunks.md5()?,
            label_count: header.label_count,
            functions: Vec::new(),
            code: Vec::new(),
            args: Vec::new(),
            bigs: ByteTable::default(),
            labels: Vec::new(),
            entries: Vec::new(),
        };
        module.records = tables::records(chunks, &mut module)?;
        module.debug = debug::items(chunks, &mut module)?;
        code::decode(chunks, &header, &mut module)?;
        module.check_entries()?;
        Ok(module)
    }

    /// Checks that exports, locals and lambdas name entries of their arity.
    fn check_entries(&self) -> Result<(), BeamError> {
        let check = |chunk: &[u8; 4], row: usize, row_bytes: usize, arity: u8, label: u32| {
            let function = self.function_at(label).map(|f| &self.functions[f as usize]);
            if function.is_some_and(|f| f.arity == arity) {
                return Ok(());
            }
            let offset = 4 + row * row_bytes + 8;
            Err(BeamError {
                chunk: *chunk,
                offset,
                kind: BeamErrorKind::NotAnEntry(label),
            })
        };
        for (i, e) in self.exports.iter().enumerate() {
            check(b"ExpT", i, 12, e.arity, e.label)?;
        }
        for (i, e) in self.locals.iter().enumerate() {
            check(b"LocT", i, 12, e.arity, e.label)?;
        }
        for (i, l) in self.lambdas.iter().enumerate() {
            check(b"FunT", i, 24, l.arity, l.label)?;
        }
        Ok(())
    }
}
