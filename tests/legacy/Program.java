import com.mongodb.AggregationOutput;
import com.mongodb.BasicDBObject;
import com.mongodb.DB;
import com.mongodb.DBCollection;
import com.mongodb.DBCursor;
import com.mongodb.DBObject;
import com.mongodb.MongoClient;
import com.mongodb.MongoException;
import com.mongodb.ReadPreference;
import com.mongodb.ServerAddress;
import com.mongodb.WriteConcern;
import com.mongodb.gridfs.GridFS;
import com.mongodb.gridfs.GridFSInputFile;
import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;

/** A program of the years 2012 to 2016: one source for the drivers 2.11, 2.14 and 3.12. Its argument is a port. */
public class Program {
    public static void main(String[] arguments) throws Exception {
        MongoClient client = new MongoClient(new ServerAddress("127.0.0.1", Integer.parseInt(arguments[0])));
        client.setWriteConcern(WriteConcern.ACKNOWLEDGED);
        DB db = client.getDB("java_" + System.nanoTime());
        writesAndReads(db.getCollection("people"));
        errors(db.getCollection("errors"));
        concerns(db.getCollection("concerns"));
        indexes(db, db.getCollection("indexes"));
        commands(db, db.getCollection("commands"));
        files(db);
        db.dropDatabase();
        check(!client.getDatabaseNames().contains(db.getName()), "the database is gone");
        client.close();
        System.out.println("done");
    }

    private static void writesAndReads(DBCollection people) {
        for (int number = 0; number < 500; number++) {
            people.insert(document("_id", number).append("even", number % 2 == 0).append("name", "p" + number));
        }
        check(people.count() == 500, "every document is there");
        check(people.getCount(document("even", true)) == 250, "a count with a query");
        DBCursor cursor = people.find(document("even", true), document("name", 1)).sort(document("_id", -1)).skip(10).limit(120).batchSize(50);
        int expected = 478;
        for (DBObject found : cursor) {
            check(found.get("_id").equals(expected) && found.containsField("name") && !found.containsField("even"), "in order");
            expected -= 2;
        }
        check(expected == 238, "as many as the limit");
        DBCursor abandoned = people.find().batchSize(2);
        abandoned.next();
        abandoned.close();
        check(people.findOne(document("_id", 7)).get("name").equals("p7"), "one document");
        check(people.findOne(document("_id", 7), document("even", 1)).get("name") == null, "one document in part");
        check(people.findOne(document("_id", -1)) == null, "no document");
        check(people.find(document("_id", 3)).setReadPreference(ReadPreference.secondaryPreferred()).hasNext(), "a read preference");
        check(people.update(document("_id", 1), document("$set", document("name", "one"))).getN() == 1, "one update");
        check(people.update(document("even", true), document("$inc", document("seen", 1)), false, true).getN() == 250, "many updates");
        check(people.update(document("_id", 1000), document("$set", document("name", "new")), true, false).getN() == 1, "an upsert");
        check(people.findOne(document("_id", 1000)).get("name").equals("new"), "the upsert is there");
        check(people.update(document("_id", 2000), document("a", 1)).getN() == 0, "no update");
        people.save(document("_id", 1000).append("name", "saved"));
        check(people.findOne(document("_id", 1000)).get("name").equals("saved"), "saved");
        check(people.remove(document("_id", 1000)).getN() == 1, "one removal");
        check(people.remove(document("even", false)).getN() == 250, "many removals");
        DBObject before = people.findAndModify(document("_id", 0), document("$set", document("name", "zero")));
        check(before.get("name").equals("p0"), "find and modify");
        check(people.find(document("_id", 0)).explain() != null, "an explanation");
    }

    private static void errors(DBCollection errors) {
        errors.insert(document("_id", 1));
        check(codeOf(() -> errors.insert(document("_id", 1))) == 11000, "a duplicate key");
        check(codeOf(() -> errors.update(document("_id", 1), document("$nosuch", document("a", 1)))) != 0, "an unknown operator");
        check(codeOf(() -> errors.find(document("a", document("$nosuch", 1))).hasNext()) != 0, "a wrong query");
        List<DBObject> batch = Arrays.<DBObject>asList(document("_id", 2), document("_id", 1), document("_id", 3));
        check(codeOf(() -> errors.insert(batch)) == 11000, "a duplicate key in a batch");
        check(errors.count() == 2, "the batch ended at its error");
    }

    private static void concerns(DBCollection concerns) throws Exception {
        concerns.insert(document("_id", 1), WriteConcern.UNACKNOWLEDGED);
        concerns.update(document("_id", 2), document("a", 1), true, false, WriteConcern.UNACKNOWLEDGED);
        for (int tries = 0; concerns.count() < 2; tries++) {
            check(tries < 1000, "writes without an answer arrive");
            Thread.sleep(5);
        }
        concerns.remove(document("_id", 1), WriteConcern.UNACKNOWLEDGED);
        concerns.insert(document("_id", 3), WriteConcern.JOURNALED);
        concerns.insert(document("_id", 4), WriteConcern.FSYNCED);
        concerns.insert(document("_id", 5), WriteConcern.MAJORITY);
        check(codeOf(() -> concerns.insert(document("_id", 6), new WriteConcern(2, 100))) != 0, "two servers are not there");
    }

    private static void indexes(DB db, DBCollection indexes) throws Exception {
        indexes.insert(document("a", 1).append("b", 2));
        ensureIndex(indexes, document("a", 1), document("background", true));
        ensureIndex(indexes, document("b", -1), document("unique", true).append("name", "mine"));
        List<String> names = new ArrayList<String>();
        for (DBObject index : indexes.getIndexInfo()) {
            names.add((String) index.get("name"));
        }
        check(new HashSet<String>(names).equals(new HashSet<String>(Arrays.asList("_id_", "a_1", "mine"))), "the indexes: " + names);
        check(codeOf(() -> indexes.insert(document("b", 2))) == 11000, "the index is unique");
        check(indexes.find(document("a", 1)).hint("a_1").count() == 1, "a hint");
        indexes.dropIndex("mine");
        check(indexes.getIndexInfo().size() == 2, "an index is gone");
        check(db.getCollectionNames().contains("indexes") && db.collectionExists("errors"), "the collections");
    }

    private static void commands(DB db, DBCollection commands) throws Exception {
        for (int number = 0; number < 10; number++) {
            commands.insert(document("n", number).append("odd", number % 2));
        }
        check(commands.distinct("odd").size() == 2, "distinct values");
        DBObject group = document("$group", document("_id", "$odd").append("sum", document("$sum", "$n")));
        int sum = 0;
        for (DBObject result : aggregated(commands, group).results()) {
            sum += ((Number) result.get("sum")).intValue();
        }
        check(sum == 45, "an aggregation");
        check(db.command("ping").ok() && db.getStats().ok() && commands.getStats().ok(), "commands");
        check(!db.command("nosuch").ok(), "a command that is none");
        db.createCollection("made", document("capped", false));
        db.getCollection("made").rename("renamed");
        db.getCollection("renamed").drop();
        check(!db.collectionExists("renamed"), "a collection is gone");
    }

    /** The driver 3.12 has the newer of the two names only. */
    private static void ensureIndex(DBCollection collection, DBObject keys, DBObject options) throws Exception {
        try {
            DBCollection.class.getMethod("ensureIndex", DBObject.class, DBObject.class).invoke(collection, keys, options);
        } catch (NoSuchMethodException recent) {
            collection.createIndex(keys, options);
        }
    }

    /** The method of that name has changed its arguments between the drivers. */
    private static AggregationOutput aggregated(DBCollection collection, DBObject stage) throws Exception {
        try {
            return (AggregationOutput) DBCollection.class.getMethod("aggregate", List.class).invoke(collection, Arrays.asList(stage));
        } catch (NoSuchMethodException old) {
            return (AggregationOutput)
                    DBCollection.class.getMethod("aggregate", DBObject.class, DBObject[].class).invoke(collection, stage, new DBObject[0]);
        }
    }

    private static void files(DB db) throws Exception {
        byte[] content = new byte[700_000];
        for (int at = 0; at < content.length; at++) {
            content[at] = (byte) (at * 31);
        }
        GridFS files = new GridFS(db);
        GridFSInputFile file = files.createFile(content);
        file.setFilename("file");
        file.save();
        ByteArrayOutputStream read = new ByteArrayOutputStream();
        files.findOne("file").writeTo(read);
        check(Arrays.equals(content, read.toByteArray()), "a file comes back");
        files.remove("file");
        check(files.findOne("file") == null, "a file is gone");
    }

    private static BasicDBObject document(String name, Object value) {
        return new BasicDBObject(name, value);
    }

    /** The code of the error that an action ends with; 0 if it succeeds, -1 for an error without a code. */
    private static int codeOf(Runnable action) {
        try {
            action.run();
            return 0;
        } catch (MongoException error) {
            return error.getCode() == 0 ? -1 : error.getCode();
        }
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }
}
