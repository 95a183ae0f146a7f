"""Login to Google Cloud and its REST APIs."""
