//! Maps events to items of an answer, and items to blocks.
//!
//! OpenAI identifies an item in each event by its index. llama.cpp sends no index and identifies a
//! function call by the id of the call; some proxies generate a new id each time.

/// The items of one answer.
#[derive(Default)]
pub(super) struct Items {
    /// In the order of their first events; the index here identifies them.
    items: Vec<Item>,
    /// In the order of their starts; the index here is the block number.
    blocks: Vec<Block>,
}

/// How the wire identifies an item.
#[derive(Default)]
pub(super) struct ItemIds {
    pub(super) index: Option<u64>,
    pub(super) id: Option<String>,
    pub(super) call_id: Option<String>,
}

/// The parts of an item. Texts and thoughts are numbered by the wire.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Text(u32),
    Summary(u32),
    Reasoning(u32),
    Call,
    /// The whole item, unchanged.
    Encrypted,
}

struct Item {
    ids: ItemIds,
    /// Some of its arguments were streamed.
    has_arguments: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Block {
    item: usize,
    part: Part,
}

impl Items {
    /// The item that a delta belongs to: by index, else by id, else the newest.
    pub(super) fn of_delta(&mut self, index: Option<u64>, id: Option<&str>) -> usize {
        let newest = self.newest().filter(|_| index.is_none());
        self.known(index, [id, None]).or(newest).unwrap_or_else(|| {
            self.open(ItemIds { index, id: id.map(str::to_owned), call_id: None })
        })
    }

    /// The item of an `added` event.
    pub(super) fn opened(&mut self, ids: ItemIds) -> usize {
        self.known(ids.index, ids.ids()).unwrap_or_else(|| self.open(ids))
    }

    /// The item of a `done` event, which may be new.
    pub(super) fn closed(&mut self, ids: ItemIds) -> usize {
        let newest = self.newest().filter(|_| ids.is_empty());
        self.known(ids.index, ids.ids()).or(newest).unwrap_or_else(|| self.open(ids))
    }

    /// The block number of a part of an item.
    pub(super) fn block(&mut self, item: usize, part: Part) -> u32 {
        let block = Block { item, part };
        // From the end: deltas nearly always belong to the newest block.
        let known = self.blocks.iter().rposition(|known| *known == block);
        let number = known.unwrap_or_else(|| {
            self.blocks.push(block);
            self.blocks.len() - 1
        });
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// Whether such a part of an item was received.
    pub(super) fn has(&self, item: usize, part: impl Fn(Part) -> bool) -> bool {
        self.blocks.iter().any(|block| block.item == item && part(block.part))
    }

    /// Whether some arguments of a call were streamed.
    pub(super) fn has_arguments(&self, item: usize) -> bool {
        self.items[item].has_arguments
    }

    /// Records that arguments of a call were streamed.
    pub(super) fn add_arguments(&mut self, item: usize, arguments: &str) {
        self.items[item].has_arguments |= !arguments.is_empty();
    }

    fn known(&self, index: Option<u64>, ids: [Option<&str>; 2]) -> Option<usize> {
        self.items.iter().rposition(|item| match index {
            Some(_) => item.ids.index == index,
            None => ids.into_iter().flatten().any(|id| item.ids.ids().contains(&Some(id))),
        })
    }

    fn newest(&self) -> Option<usize> {
        self.items.len().checked_sub(1)
    }

    /// Above the limit, further items count as the last one.
    fn open(&mut self, ids: ItemIds) -> usize {
        if self.items.len() < antiphon_core::stream::BLOCKS_MAX {
            self.items.push(Item { ids, has_arguments: false });
        }
        self.items.len() - 1
    }
}

impl ItemIds {
    fn ids(&self) -> [Option<&str>; 2] {
        [self.id.as_deref(), self.call_id.as_deref()]
    }

    fn is_empty(&self) -> bool {
        self.index.is_none() && self.ids() == [None, None]
    }
}
