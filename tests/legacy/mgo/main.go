// A program of the years 2012 to 2018 on the driver mgo.v2. Its argument is a port.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"time"

	"gopkg.in/mgo.v2"
	"gopkg.in/mgo.v2/bson"
)

type person struct {
	ID   int    `bson:"_id"`
	Even bool   `bson:"even"`
	Name string `bson:"name"`
}

func main() {
	session, err := mgo.DialWithTimeout("127.0.0.1:"+os.Args[1], 10*time.Second)
	must(err)
	defer session.Close()
	db := session.DB(fmt.Sprintf("mgo_%d", time.Now().UnixNano()))
	writesAndReads(session, db.C("people"))
	errors(db.C("errors"))
	concerns(session, db)
	indexes(db.C("indexes"))
	files(db)
	must(db.DropDatabase())
	fmt.Println("done")
}

func writesAndReads(session *mgo.Session, people *mgo.Collection) {
	for number := 0; number < 300; number++ {
		must(people.Insert(person{number, number%2 == 0, fmt.Sprint("p", number)}))
	}
	count, err := people.Find(bson.M{"even": true}).Count()
	must(err)
	check(count == 150, "a count with a query")
	iterator := people.Find(bson.M{"even": true}).Sort("-_id").Skip(5).Limit(100).Batch(30).Iter()
	expected := 288
	var found person
	for iterator.Next(&found) {
		check(found.ID == expected, "in order")
		expected -= 2
	}
	must(iterator.Close())
	check(expected == 88, "as many as the limit")
	must(people.FindId(7).One(&found))
	check(found.Name == "p7", "one document")
	check(people.FindId(-1).One(&found) == mgo.ErrNotFound, "no document")
	must(people.UpdateId(1, bson.M{"$set": bson.M{"name": "one"}}))
	check(people.UpdateId(-1, bson.M{"$set": bson.M{"name": "one"}}) == mgo.ErrNotFound, "no update")
	info, err := people.UpdateAll(bson.M{"even": true}, bson.M{"$inc": bson.M{"seen": 1}})
	must(err)
	check(info.Updated == 150, "many updates")
	info, err = people.Upsert(bson.M{"name": "new"}, bson.M{"$set": bson.M{"even": true}})
	must(err)
	check(info.UpsertedId != nil, "an upsert")
	must(people.RemoveId(info.UpsertedId))
	info, err = people.RemoveAll(bson.M{"even": false})
	must(err)
	check(info.Removed == 150, "many removals")
	change := mgo.Change{Update: bson.M{"$set": bson.M{"name": "zero"}}, ReturnNew: true}
	_, err = people.FindId(0).Apply(change, &found)
	must(err)
	check(found.Name == "zero", "find and modify")
	var names []string
	must(people.Find(bson.M{"_id": bson.M{"$lt": 6}}).Distinct("name", &names))
	check(len(names) == 3, "distinct values")
	var groups []bson.M
	must(people.Pipe([]bson.M{{"$group": bson.M{"_id": nil, "count": bson.M{"$sum": 1}}}}).All(&groups))
	check(groups[0]["count"] == 150, "an aggregation")
	must(session.Ping())
}

func errors(errors *mgo.Collection) {
	must(errors.Insert(bson.M{"_id": 1}))
	check(mgo.IsDup(errors.Insert(bson.M{"_id": 1})), "a duplicate key")
	check(errors.Find(bson.M{"a": bson.M{"$nosuch": 1}}).One(&bson.M{}) != nil, "a wrong query")
	check(errors.UpdateId(1, bson.M{"$nosuch": bson.M{"a": 1}}) != nil, "an unknown operator")
}

func concerns(session *mgo.Session, db *mgo.Database) {
	own := session.Copy()
	defer own.Close()
	concerns := db.C("concerns").With(own)
	own.SetSafe(nil)
	must(concerns.Insert(bson.M{"_id": 1}))
	own.SetSafe(&mgo.Safe{J: true})
	must(concerns.Insert(bson.M{"_id": 2}))
	own.SetSafe(&mgo.Safe{WMode: "majority"})
	must(concerns.Insert(bson.M{"_id": 3}))
	own.SetSafe(&mgo.Safe{FSync: true})
	must(concerns.Insert(bson.M{"_id": 4}))
	count, err := concerns.Count()
	must(err)
	check(count == 4, "every document is there")
	own.SetSafe(&mgo.Safe{W: 2, WTimeout: 100})
	check(concerns.Insert(bson.M{"_id": 5}) != nil, "two servers are not there")
}

func indexes(indexes *mgo.Collection) {
	must(indexes.EnsureIndexKey("a", "-b"))
	must(indexes.EnsureIndex(mgo.Index{Key: []string{"c"}, Unique: true, Background: true}))
	have, err := indexes.Indexes()
	must(err)
	check(len(have) == 3, "the indexes")
	must(indexes.Insert(bson.M{"c": 1}))
	check(mgo.IsDup(indexes.Insert(bson.M{"c": 1})), "the index is unique")
	must(indexes.DropIndex("c"))
}

func files(db *mgo.Database) {
	content := bytes.Repeat([]byte("0123456789"), 70_000)
	file, err := db.GridFS("fs").Create("file")
	must(err)
	_, err = file.Write(content)
	must(err)
	must(file.Close())
	file, err = db.GridFS("fs").Open("file")
	must(err)
	read, err := io.ReadAll(file)
	must(err)
	check(bytes.Equal(read, content), "a file comes back")
	must(file.Close())
	must(db.GridFS("fs").Remove("file"))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func check(holds bool, what string) {
	if !holds {
		panic(what)
	}
}
