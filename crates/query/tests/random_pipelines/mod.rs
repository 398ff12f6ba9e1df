//! Random documents and pipelines: few names and values, so that they meet each other.

use pando_document::{Document, Value, doc};

/// A series of random numbers (xorshift).
pub struct Chance(u64);

impl Chance {
    /// The series of a seed.
    pub fn of_seed(seed: u64) -> Chance {
        let mut chance = Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        chance.next();
        chance
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() >> 11).expect("64 bits") % end
    }

    fn of<'c, C>(&mut self, choices: &'c [C]) -> &'c C {
        &choices[self.below(choices.len())]
    }

    fn one_in(&mut self, number: usize) -> bool {
        self.below(number) == 0
    }

    fn scalar(&mut self) -> Value {
        match self.below(9) {
            0 => Value::Null,
            1 => Value::from("x"),
            2 => Value::Double(1.0),
            3 => Value::Int64(2),
            4 => Value::Boolean(true),
            _ => Value::Int32(i32::try_from(self.below(4)).expect("small")),
        }
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth > 2 { 4 } else { 8 }) {
            0..=3 => self.scalar(),
            4 | 5 => Value::Array((0..self.below(4)).map(|_| self.value(depth + 1)).collect()),
            _ => Value::Document(self.fields(&["x", "y", "k"], depth + 1)),
        }
    }

    pub fn fields(&mut self, names: &[&str], depth: usize) -> Document {
        let mut document = Document::new();
        for name in names {
            if !self.one_in(4) {
                let value = self.value(depth);
                document.push(*name, value);
            }
        }
        document
    }

    fn path(&mut self) -> String {
        let first = *self.of(&["a", "b", "k", "t", "j", "_id"]);
        match self.below(4) {
            0 => format!("{first}.{}", self.of(&["x", "y", "k"])),
            _ => first.to_owned(),
        }
    }

    fn condition(&mut self) -> Value {
        let value = self.scalar();
        let operator = match self.below(9) {
            0 => return value,
            1 => doc! { "$in": (Value::Array(vec![value, self.scalar()])) },
            2 => doc! { "$exists": (self.one_in(2)) },
            3 => doc! { "$type": (*self.of(&["int", "null", "object", "array", "string"])) },
            4 => doc! { "$not": { "$eq": (value) } },
            5 => doc! { "$ne": (value) },
            _ => {
                let mut one = Document::new();
                one.push(*self.of(&["$gt", "$gte", "$lt", "$lte", "$eq"]), value);
                one
            }
        };
        Value::Document(operator)
    }

    fn filter(&mut self, depth: usize) -> Document {
        let mut filter = Document::new();
        for _ in 0..=self.below(2) {
            let path = self.path();
            let condition = self.condition();
            filter.insert(path.as_str(), condition);
        }
        if depth < 2 && self.one_in(4) {
            let clauses = (0..=self.below(2)).map(|_| Value::Document(self.filter(depth + 1))).collect();
            filter.push(*self.of(&["$or", "$and", "$nor"]), Value::Array(clauses));
        }
        if self.one_in(8) {
            filter.push("$expr", doc! { "$eq": [(format!("${}", self.path())), (self.scalar())] });
        }
        filter
    }

    fn expression(&mut self) -> Value {
        match self.below(5) {
            0 => Value::Document(doc! { "$ifNull": [(format!("${}", self.path())), 7] }),
            1 => Value::Document(doc! { "$literal": (self.scalar()) }),
            _ => Value::from(format!("${}", self.path())),
        }
    }

    fn sort(&mut self) -> Document {
        let mut sort = Document::new();
        for _ in 0..=self.below(2) {
            let direction = if self.one_in(2) { 1 } else { -1 };
            let path = self.path();
            sort.insert(path.as_str(), direction);
        }
        sort
    }

    fn lookup(&mut self) -> Document {
        let mut options = doc! { "from": "c", "as": (*self.of(&["j", "j", "t", "a.j"])) };
        if !self.one_in(4) {
            options.push("localField", self.path());
            options.push("foreignField", self.path());
        }
        if self.one_in(3) || options.get("localField").is_none() {
            let stages = match self.below(3) {
                0 => vec![],
                1 => vec![doc! { "$match": (self.filter(1)) }],
                _ => vec![doc! { "$sort": { "_id": -1 } }, doc! { "$limit": 2 }],
            };
            options.push("pipeline", Value::Array(stages.into_iter().map(Value::Document).collect()));
            if self.one_in(3) {
                options.push("let", doc! { "v": (format!("${}", self.path())) });
            }
        }
        doc! { "$lookup": (options) }
    }

    /// One stage, or some that belong together.
    fn stages(&mut self) -> Vec<Document> {
        let name = *self.of(&["a", "b", "k", "z"]);
        let mut computed = Document::new();
        computed.push(name, self.expression());
        match self.below(28) {
            0..=3 => vec![doc! { "$match": (self.filter(0)) }],
            4 => vec![doc! { "$addFields": (computed) }],
            5 => {
                computed.insert("k", 1);
                vec![doc! { "$project": (computed) }]
            }
            6 => vec![doc! { "$unset": (self.path()) }],
            7 => vec![doc! { "$sort": (self.sort()) }],
            8 => vec![doc! { "$limit": (1 + i32::try_from(self.below(9)).expect("small")) }],
            9 => vec![doc! { "$skip": (i32::try_from(self.below(4)).expect("small")) }],
            10 => {
                let mut unwind = doc! { "path": (format!("${}", self.of(&["t", "a", "j", "t.x"]))) };
                if self.one_in(2) {
                    unwind.push("preserveNullAndEmptyArrays", true);
                }
                if self.one_in(4) {
                    unwind.push("includeArrayIndex", "n");
                }
                vec![doc! { "$unwind": (unwind) }]
            }
            11 => self.groups(),
            12 => vec![doc! { "$replaceRoot": { "newRoot": (self.root()) } }],
            13 => vec![doc! { "$unionWith": { "coll": "c", "pipeline": [{ "$match": (self.filter(1)) }] } }],
            14 => vec![self.lookup()],
            15 => self.windows(),
            16 => self.ends_of_groups(),
            17 => self.groups_of_elements(),
            18 => self.group_with(&["$sum", "$avg", "$count"]),
            19 => self.functions_of_windows(),
            20 => self.gaps(),
            21 => self.filled(),
            22 => vec![self.graph()],
            23 => self.buckets(),
            24 => self.facets(),
            25 => vec![doc! { "$sortByCount": (self.expression()) }, doc! { "$sort": { "_id": 1 } }],
            26 => {
                let test = doc! { "$eq": [(format!("${}", self.path())), (self.scalar())] };
                vec![doc! { "$redact": { "$cond": [(test), "$$PRUNE", "$$DESCEND"] } }]
            }
            _ => {
                let lookup = self.lookup();
                vec![lookup, doc! { "$unwind": "$j" }, doc! { "$match": { "j.k": (self.condition()) } }]
            }
        }
    }

    /// A group and, every other time, a filter of its keys. Groups have no order of their own; equal keys are
    /// one group.
    fn groups(&mut self) -> Vec<Document> {
        let id = match self.below(3) {
            0 => Value::Document(doc! { "x": (self.expression()), "y": (self.expression()) }),
            _ => self.expression(),
        };
        let mut stages = vec![
            doc! { "$group": { "_id": (id), "a": { "$sum": "$k" }, "t": { "$push": "$b" } } },
            doc! { "$sort": { "_id": 1 } },
        ];
        if self.one_in(2) {
            let path = *self.of(&["_id", "_id", "_id.x", "_id.y"]);
            let mut filter = Document::new();
            let condition = match self.below(4) {
                0 => Value::Document(doc! { "$exists": (self.one_in(2)) }),
                1 => Value::Document(doc! { "$type": "null" }),
                _ => self.condition(),
            };
            filter.push(path, condition);
            stages.push(doc! { "$match": (filter) });
        }
        stages
    }

    /// An expression for the values of an accumulator.
    fn argument(&mut self) -> Value {
        match self.below(8) {
            0 => Value::from("$$ROOT"),
            1 => Value::Document(doc! { "$type": (format!("${}", self.path())) }),
            2 => Value::Int32(1),
            _ => self.expression(),
        }
    }

    /// A group with some of these accumulators, in the order of its keys.
    fn group_with(&mut self, operators: &[&str]) -> Vec<Document> {
        let mut group = Document::new();
        let id = match self.below(4) {
            0 => Value::Null,
            1 => Value::Document(doc! { "x": (self.expression()), "y": (self.expression()) }),
            _ => self.expression(),
        };
        group.push("_id", id);
        for name in ["a", "k", "t"] {
            let mut call = Document::new();
            match *self.of(operators) {
                "$count" => call.push("$count", Document::new()),
                "$top" => {
                    let options = doc! { "sortBy": (self.sort()), "output": (self.argument()) };
                    call.push("$top", options);
                }
                operator => call.push(operator, self.argument()),
            }
            group.push(name, call);
        }
        vec![doc! { "$group": (group) }, doc! { "$sort": { "_id": 1 } }]
    }

    /// The ends of an order by groups.
    fn ends_of_groups(&mut self) -> Vec<Document> {
        let mut stages = vec![doc! { "$sort": (self.sort()) }];
        let operators: &[&str] = if self.one_in(4) {
            &["$first", "$last", "$push"]
        } else {
            &["$first", "$last", "$last", "$count"]
        };
        stages.extend(self.group_with(operators));
        stages
    }

    /// Groups of the elements of an array.
    fn groups_of_elements(&mut self) -> Vec<Document> {
        let field = *self.of(&["t", "a", "k", "t.x"]);
        let mut unwind = doc! { "path": (format!("${field}")) };
        if self.one_in(2) {
            unwind.push("preserveNullAndEmptyArrays", true);
        }
        if self.one_in(6) {
            unwind.push("includeArrayIndex", "n");
        }
        let mut stages = vec![doc! { "$unwind": (unwind) }];
        stages.extend(self.group_with(&["$sum", "$push", "$first", "$last", "$max", "$count", "$top"]));
        stages
    }

    /// A window, and a filter of its partitions, which a stage in front makes no arrays of.
    fn windows(&mut self) -> Vec<Document> {
        let partition = match self.below(3) {
            0 => Value::Document(doc! { "x": "$k", "y": "$p" }),
            _ => Value::from("$p"),
        };
        let is_array =
            doc! { "$in": [{ "$type": (format!("${}", self.of(&["a", "b", "k"]))) }, ["array", "missing"]] };
        let own = doc! { "$cond": [(is_array), "$_id", "$k"] };
        let mut stages = vec![
            doc! { "$addFields": { "p": { "$cond": [{ "$isArray": "$k" }, (own), "$k"] } } },
            doc! { "$setWindowFields": {
                "partitionBy": (partition), "sortBy": { "_id": 1 },
                "output": { "n": { "$sum": 1, "window": { "documents": ["unbounded", "current"] } } }
            } },
        ];
        let mut filter = Document::new();
        filter.push(*self.of(&["p", "k", "p.x", "n"]), self.condition());
        stages.push(doc! { "$match": (filter) });
        stages
    }

    /// `n`: a field with a small whole number, or null.
    fn whole_number(&mut self) -> Document {
        let path = format!("${}", self.of(&["a", "b", "k"]));
        let is_whole = doc! { "$in": [{ "$type": (path.clone()) }, ["int", "long"]] };
        doc! { "$addFields": { "n": { "$cond": [(is_whole), (path), (Value::Null)] } } }
    }

    /// Functions over windows of every kind, and often a filter behind them.
    fn functions_of_windows(&mut self) -> Vec<Document> {
        let pair = |least: Value, most: Value| Value::Array(vec![least, most]);
        let documents = [
            pair(Value::from("unbounded"), Value::from("unbounded")),
            pair(Value::from("unbounded"), Value::Int32(1)),
            pair(Value::Int32(-2), Value::from("current")),
            pair(Value::Int32(-1), Value::Int32(1)),
            pair(Value::Int32(1), Value::Int32(3)),
            pair(Value::from("current"), Value::from("unbounded")),
        ];
        let mut output = Document::new();
        for name in ["n", "w", "z"] {
            let mut rule = Document::new();
            match self.below(7) {
                0 => rule.push(*self.of(&["$rank", "$denseRank", "$documentNumber"]), Document::new()),
                1 => {
                    let by = i32::try_from(self.below(5)).expect("small") - 2;
                    rule.push("$shift", doc! { "output": (self.argument()), "by": by, "default": "none" });
                }
                2 => rule.push("$locf", self.argument()),
                3 => rule.push("$expMovingAvg", doc! { "input": "$n", "N": 2 }),
                _ => {
                    let operator = *self.of(&["$sum", "$avg", "$min", "$max", "$push", "$first", "$last"]);
                    rule.push(operator, if operator == "$sum" { Value::from("$n") } else { self.argument() });
                    let mut window = Document::new();
                    window.push(*self.of(&["documents", "documents", "range"]), self.of(&documents).clone());
                    rule.push("window", window);
                }
            }
            output.push(name, rule);
            if self.one_in(2) {
                break;
            }
        }
        let partition = *self.of(&["$n", "$p", "$z"]);
        let mut stages = vec![
            self.whole_number(),
            doc! { "$setWindowFields": { "partitionBy": (partition), "sortBy": { "_id": 1 }, "output": (output) } },
        ];
        if self.one_in(2) {
            stages.push(doc! { "$match": (self.filter(1)) });
        }
        stages
    }

    fn gaps(&mut self) -> Vec<Document> {
        let bounds = match self.below(3) {
            0 => Value::from("full"),
            1 => Value::from("partition"),
            _ => Value::Array(vec![Value::Int32(-1), Value::Int32(3)]),
        };
        let mut options = doc! { "field": "n", "range": { "step": 1, "bounds": (bounds) } };
        if self.one_in(2) {
            options.push("partitionByFields", Value::Array(vec![Value::from("p")]));
        }
        vec![self.whole_number(), doc! { "$densify": (options) }]
    }

    fn filled(&mut self) -> Vec<Document> {
        let mut output = Document::new();
        output.push(
            *self.of(&["n", "a", "k.x"]),
            match self.below(3) {
                0 => doc! { "method": "linear" },
                1 => doc! { "value": (self.expression()) },
                _ => doc! { "method": "locf" },
            },
        );
        let mut options = doc! { "sortBy": { "_id": 1 }, "output": (output) };
        if self.one_in(2) {
            options.push("partitionByFields", Value::Array(vec![Value::from("p")]));
        }
        vec![self.whole_number(), doc! { "$fill": (options) }]
    }

    fn graph(&mut self) -> Document {
        let mut options = doc! {
            "from": "c", "startWith": (self.expression()), "connectFromField": (self.path()), "connectToField": (self.path()),
            "as": (*self.of(&["j", "t"]))
        };
        match self.below(4) {
            0 => options.push("maxDepth", 1),
            1 => options.push("depthField", "depth"),
            2 => options.push("restrictSearchWithMatch", self.filter(1)),
            _ => {}
        }
        doc! { "$graphLookup": (options) }
    }

    fn buckets(&mut self) -> Vec<Document> {
        let output = doc! { "n": { "$sum": 1 }, "t": { "$push": (self.argument()) }, "k": { "$first": (self.argument()) } };
        let by = self.expression();
        match self.below(3) {
            0 => vec![
                doc! { "$bucket": { "groupBy": (by), "boundaries": [0, 1, 3], "default": "x", "output": (output) } },
                doc! { "$sort": { "_id": 1 } },
            ],
            _ => {
                let buckets = 1 + i32::try_from(self.below(4)).expect("small");
                vec![doc! { "$bucketAuto": { "groupBy": (by), "buckets": buckets, "output": (output) } }]
            }
        }
    }

    fn facets(&mut self) -> Vec<Document> {
        let mut facets = Document::new();
        for name in ["a", "k"] {
            let stages = match self.below(4) {
                0 => vec![doc! { "$match": (self.filter(1)) }, doc! { "$limit": 3 }],
                1 => self.group_with(&["$sum", "$first", "$push"]),
                2 => self.functions_of_windows(),
                _ => self.buckets(),
            };
            facets.push(name, Value::Array(stages.into_iter().map(Value::Document).collect()));
        }
        let mut stages = vec![doc! { "$facet": (facets) }];
        if self.one_in(2) {
            stages.push(doc! { "$unwind": "$a" });
        }
        stages
    }

    fn root(&mut self) -> Value {
        match self.below(3) {
            0 => Value::from("$b"),
            _ => Value::Document(doc! { "$mergeObjects": [{ "a": "$k" }, "$$ROOT"] }),
        }
    }

    pub fn pipeline(&mut self) -> Vec<Document> {
        let mut pipeline = Vec::new();
        for _ in 0..=self.below(5) {
            pipeline.extend(self.stages());
        }
        pipeline
    }
}
