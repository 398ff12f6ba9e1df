package main

import (
	"bytes"
	"context"
	"math"
	"os"
	"time"

	"github.com/gogo/protobuf/proto"
	"github.com/pingcap/kvproto/pkg/kvrpcpb"
	"github.com/pingcap/kvproto/pkg/tikvpb"
	"google.golang.org/grpc"
)

// bridge mends six differences between this store and what a client expects of TiKV:
//   - It drops the list of secondary keys unless a commit is asynchronous, because this store would keep it in every lock.
//   - It answers a get by a scan of one key where a table was written since its timestamp. Where the hash index of a table has a
//     collision, this store's get takes the newest version in the table, whatever the timestamp (badger, table.go: Get seeks to
//     the key and not to the version).
//   - It marks an absent key as such, which this store tells by an empty value alone.
//   - It answers a scan backwards by one forwards, because this store begins the former at the newest version, whatever
//     the timestamp (db_reader.go: the iterator is made before the timestamp is set).
//   - It gives the locks of a range, where this store gives the first ones of the region.
//   - It has readers wait for asynchronous and one-phase commits that are on their way (see memoryLocks).
type bridge struct {
	node     tikvpb.TikvServer
	underWay *memoryLocks
	// The folder of the tables.
	tables string
}

// The clocks of the placement driver and of the file system may differ by this much.
const clockMargin = time.Second

func (bridge *bridge) intercept(ctx context.Context, request interface{}, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (interface{}, error) {
	if isRead := readKeys(request); isRead != nil {
		if err := bridge.underWay.await(ctx, isRead); err != nil {
			return nil, err
		}
	}
	switch call := request.(type) {
	case *kvrpcpb.GetRequest:
		answer, err := handle(ctx, request)
		// A table that comes after this look was not seen by the get before it.
		if bridge.hasNewTable(call.Version) {
			return bridge.get(ctx, call)
		}
		if get, is := answer.(*kvrpcpb.GetResponse); is && get.Error == nil && get.RegionError == nil && len(get.Value) == 0 {
			get.NotFound = true
		}
		return answer, err
	case *kvrpcpb.BatchGetRequest:
		answer, err := handle(ctx, request)
		if bridge.hasNewTable(call.Version) {
			return bridge.batchGet(ctx, call)
		}
		return answer, err
	case *kvrpcpb.ScanRequest:
		if call.Reverse {
			return scanBackwards(ctx, call, handle)
		}
	case *kvrpcpb.ScanLockRequest:
		return scanLocks(ctx, call, handle)
	case *kvrpcpb.PrewriteRequest:
		if !call.UseAsyncCommit {
			call.Secondaries = nil
		}
		if call.UseAsyncCommit || call.TryOnePc {
			defer bridge.underWay.hold(call.Mutations)()
		}
	}
	return handle(ctx, request)
}

// hasNewTable tells whether a table may have been written since a timestamp. Its file is there before a reader sees it.
func (bridge *bridge) hasNewTable(version uint64) bool {
	folder, err := os.Stat(bridge.tables)
	taken := time.UnixMilli(int64(version >> 18))
	return err != nil || !folder.ModTime().Add(clockMargin).Before(taken)
}

// scanKey reads one key; nil where it is absent.
func (bridge *bridge) scanKey(ctx context.Context, of *kvrpcpb.Context, key []byte, version uint64) (*kvrpcpb.KvPair, *kvrpcpb.ScanResponse, error) {
	end := append(append([]byte{}, key...), 0)
	answer, err := bridge.node.KvScan(ctx, &kvrpcpb.ScanRequest{Context: of, StartKey: key, EndKey: end, Limit: 1, Version: version})
	if err != nil || answer.RegionError != nil || len(answer.Pairs) == 0 {
		return nil, answer, err
	}
	return answer.Pairs[0], answer, nil
}

func (bridge *bridge) get(ctx context.Context, call *kvrpcpb.GetRequest) (interface{}, error) {
	pair, answer, err := bridge.scanKey(ctx, call.Context, call.Key, call.Version)
	switch {
	case err != nil:
		return nil, err
	case answer.RegionError != nil:
		return &kvrpcpb.GetResponse{RegionError: answer.RegionError}, nil
	case pair == nil:
		return &kvrpcpb.GetResponse{NotFound: true}, nil
	}
	return &kvrpcpb.GetResponse{Error: pair.Error, Value: pair.Value}, nil
}

func (bridge *bridge) batchGet(ctx context.Context, call *kvrpcpb.BatchGetRequest) (interface{}, error) {
	found := &kvrpcpb.BatchGetResponse{}
	for _, key := range call.Keys {
		pair, answer, err := bridge.scanKey(ctx, call.Context, key, call.Version)
		if err != nil {
			return nil, err
		}
		if answer.RegionError != nil {
			return &kvrpcpb.BatchGetResponse{RegionError: answer.RegionError}, nil
		}
		if pair != nil {
			found.Pairs = append(found.Pairs, pair)
		}
	}
	return found, nil
}

// scanBackwards reads the whole range forwards, which a test can afford. Backwards, a range begins at its upper end.
func scanBackwards(ctx context.Context, scan *kvrpcpb.ScanRequest, handle grpc.UnaryHandler) (interface{}, error) {
	forwards := *scan
	forwards.Reverse, forwards.Limit = false, math.MaxInt32
	forwards.StartKey, forwards.EndKey = scan.EndKey, scan.StartKey
	answer, err := handle(ctx, &forwards)
	found, is := answer.(*kvrpcpb.ScanResponse)
	if err != nil || !is {
		return answer, err
	}
	for from, to := 0, len(found.Pairs)-1; from < to; from, to = from+1, to-1 {
		found.Pairs[from], found.Pairs[to] = found.Pairs[to], found.Pairs[from]
	}
	if len(found.Pairs) > int(scan.Limit) {
		found.Pairs = found.Pairs[:scan.Limit]
	}
	return found, nil
}

// scanLocks lists all locks of the region, and gives those of the range.
func scanLocks(ctx context.Context, scan *kvrpcpb.ScanLockRequest, handle grpc.UnaryHandler) (interface{}, error) {
	whole := *scan
	whole.Limit = math.MaxInt32
	answer, err := handle(ctx, &whole)
	found, is := answer.(*kvrpcpb.ScanLockResponse)
	if err != nil || !is {
		return answer, err
	}
	end := endOf(scan)
	var inRange []*kvrpcpb.LockInfo
	for _, lock := range found.Locks {
		isBefore := bytes.Compare(lock.Key, scan.StartKey) < 0
		isBehind := len(end) > 0 && bytes.Compare(lock.Key, end) >= 0
		if !isBefore && !isBehind && (scan.Limit == 0 || len(inRange) < int(scan.Limit)) {
			inRange = append(inRange, lock)
		}
	}
	found.Locks = inRange
	return found, nil
}

// endOf gives the end of the range, which is younger than this store's description of the request: its field 5, in bytes (2).
func endOf(scan *kvrpcpb.ScanLockRequest) []byte {
	unknown := proto.NewBuffer(scan.XXX_unrecognized)
	if tag, err := unknown.DecodeVarint(); err != nil || tag != 5<<3|2 {
		return nil
	}
	end, err := unknown.DecodeRawBytes(false)
	if err != nil {
		return nil
	}
	return end
}
