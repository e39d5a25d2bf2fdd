//! Which item of an answer an event is about, and which block it becomes.
//!
//! OpenAI names an item in each event by its place in the answer. llama.cpp gives no places and
//! calls a function call by the id of the call; some proxies make up a new id each time.

/// The items of one answer.
#[derive(Default)]
pub(super) struct Items {
    /// In the order they were first heard of; their place here stands for them.
    items: Vec<Item>,
    /// In the order they were opened; their place here is their number.
    blocks: Vec<Block>,
}

/// What an item is called on the wire.
#[derive(Default)]
pub(super) struct Names {
    pub(super) place: Option<u64>,
    pub(super) id: Option<String>,
    pub(super) call_id: Option<String>,
}

/// What an item is made of. Texts and thoughts are numbered by the wire.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Text(u32),
    Summary(u32),
    Reasoning(u32),
    Call,
    /// The whole item, as it came.
    Sealed,
}

struct Item {
    names: Names,
    /// Some of its arguments came.
    argued: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Block {
    item: usize,
    part: Part,
}

impl Items {
    /// The item a delta belongs to: the one at its place, else the one of its id, else the
    /// newest.
    pub(super) fn of_delta(&mut self, place: Option<u64>, id: Option<&str>) -> usize {
        let newest = self.newest().filter(|_| place.is_none());
        self.known(place, [id, None])
            .or(newest)
            .unwrap_or_else(|| self.open(Names { place, id: id.map(str::to_owned), call_id: None }))
    }

    /// The item that is said to begin.
    pub(super) fn opened(&mut self, names: Names) -> usize {
        self.known(names.place, names.ids()).unwrap_or_else(|| self.open(names))
    }

    /// The item that is said to be done, which may be news.
    pub(super) fn closed(&mut self, names: Names) -> usize {
        let newest = self.newest().filter(|_| names.is_empty());
        self.known(names.place, names.ids()).or(newest).unwrap_or_else(|| self.open(names))
    }

    /// The number of the block that a part of an item becomes.
    pub(super) fn block(&mut self, item: usize, part: Part) -> u32 {
        let block = Block { item, part };
        // From the back: deltas nearly always belong to the newest block.
        let known = self.blocks.iter().rposition(|known| *known == block);
        let number = known.unwrap_or_else(|| {
            self.blocks.push(block);
            self.blocks.len() - 1
        });
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// Whether anything of such a part of an item came.
    pub(super) fn has(&self, item: usize, part: impl Fn(Part) -> bool) -> bool {
        self.blocks.iter().any(|block| block.item == item && part(block.part))
    }

    /// Whether some of the arguments of a call came.
    pub(super) fn is_argued(&self, item: usize) -> bool {
        self.items[item].argued
    }

    /// Arguments of a call came.
    pub(super) fn argue(&mut self, item: usize, arguments: &str) {
        self.items[item].argued |= !arguments.is_empty();
    }

    fn known(&self, place: Option<u64>, ids: [Option<&str>; 2]) -> Option<usize> {
        self.items.iter().rposition(|item| match place {
            Some(_) => item.names.place == place,
            None => ids.into_iter().flatten().any(|id| item.names.ids().contains(&Some(id))),
        })
    }

    fn newest(&self) -> Option<usize> {
        self.items.len().checked_sub(1)
    }

    /// More than an answer may hold all belong to the last one.
    fn open(&mut self, names: Names) -> usize {
        if self.items.len() < antiphon_core::stream::BLOCKS_MAX {
            self.items.push(Item { names, argued: false });
        }
        self.items.len() - 1
    }
}

impl Names {
    fn ids(&self) -> [Option<&str>; 2] {
        [self.id.as_deref(), self.call_id.as_deref()]
    }

    fn is_empty(&self) -> bool {
        self.place.is_none() && self.ids() == [None, None]
    }
}
