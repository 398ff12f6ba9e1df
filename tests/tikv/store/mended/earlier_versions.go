// This file becomes one of unistore's package raftstore: `mend` in ../../cluster.sh copies it there.

package raftstore

import "github.com/ngaut/unistore/tikv/mvcc"

// writeEarlierVersions writes the entries that come before a second version of a key, in batches of their own. `WriteToKV` then
// writes the rest. Its transaction keeps one entry for each key (badger, transaction.go: pendingWrites), so that of two commits
// of a key that Raft brings at once the earlier one would be lost, and with it what a snapshot between them reads.
func (wb *WriteBatch) writeEarlierVersions(bundle *mvcc.DBBundle) error {
	for {
		at := wb.secondVersion()
		if at == 0 {
			return nil
		}
		earlier := &WriteBatch{entries: wb.entries[:at]}
		if err := earlier.WriteToKV(bundle); err != nil {
			return err
		}
		wb.entries = wb.entries[at:]
	}
}

// secondVersion gives the place of the first entry whose key has another version before it; 0 if there is none.
func (wb *WriteBatch) secondVersion() int {
	versions := make(map[string]uint64, len(wb.entries))
	for at, entry := range wb.entries {
		key := string(entry.Key.UserKey)
		before, is := versions[key]
		if is && before != entry.Key.Version {
			return at
		}
		versions[key] = entry.Key.Version
	}
	return 0
}
